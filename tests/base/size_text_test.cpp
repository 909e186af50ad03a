#include "base/size_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"
#include "base/shape.h"

namespace tide {
namespace {

TEST(SizeText, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_size("0").count(), 0);
  EXPECT_EQ(parse_size("123").count(), 123);
  EXPECT_EQ(parse_size("512MiB").count(), 512LL << 20);
  EXPECT_EQ(parse_size("12GiB").count(), 12LL << 30);
  EXPECT_EQ(parse_size("1.5GB").count(), 1'500'000'000);
  EXPECT_EQ(parse_size("2 KiB").count(), 2048);
  EXPECT_EQ(parse_size("9007199254740993").count(), 9007199254740993);  // beyond what a double holds
}

TEST(SizeText, RefusesTheRest) {
  for (const char* text : {"", "GiB", "-1", "12XB", "1e", "nan", "inf", "12GiBs", "0x10", "99999999999999999999",
                           "9e18GiB", "9000000000TiB"}) {
    try {
      (void)parse_size(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(SizeText, WritesThreeDigits) {
  EXPECT_EQ(format_size(Bytes(0)), "0 B");
  EXPECT_EQ(format_size(Bytes(1023)), "1023 B");
  EXPECT_EQ(format_size(Bytes(1024)), "1.00 KiB");
  EXPECT_EQ(format_size(Bytes(1561702400)), "1.45 GiB");
  EXPECT_EQ(format_size(Bytes(12LL << 30)), "12.0 GiB");
  EXPECT_EQ(format_size(Bytes(1023LL << 20)), "1.00 GiB");
}

TEST(Bytes, NeverWrapsAndIsNeverNegative) {
  const Bytes most(std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW(most + Bytes(1), Error);
  EXPECT_THROW(most * 2, Error);
  EXPECT_THROW(Bytes(1) - Bytes(2), Error);
  EXPECT_THROW(Bytes(-1), Error);
  EXPECT_THROW((void)most.aligned(), Error);
  EXPECT_EQ(Bytes(1).aligned().count(), 256);
  EXPECT_EQ(Bytes(256).aligned().count(), 256);
  EXPECT_EQ(Bytes(0).aligned().count(), 0);
}

TEST(Shape, CountsElementsOrThrows) {
  EXPECT_EQ((Shape{2, 3, 4, 5}).elements(), 120);
  EXPECT_EQ(bytes_of({2, 3, 4, 5}, DataType::f32).count(), 480);
  EXPECT_EQ(bytes_of({2, 3, 4, 5}, DataType::u8).count(), 120);
  EXPECT_THROW((void)(Shape{1LL << 40, 1LL << 20, 8, 1}).elements(), Error);
}

// Known answers of Philox 4x32-10, from the test vectors of its authors (Random123).
TEST(Random, PhiloxMatchesItsTestVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Random4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (Random4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Random4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsDiffer) {
  const Random4 base = random_block(1, RandomUse::dropout, 2, 3, 4, 5);
  EXPECT_NE(base, random_block(2, RandomUse::dropout, 2, 3, 4, 5));
  EXPECT_NE(base, random_block(1, RandomUse::shuffle, 2, 3, 4, 5));
  EXPECT_NE(base, random_block(1, RandomUse::dropout, 9, 3, 4, 5));
  EXPECT_NE(base, random_block(1, RandomUse::dropout, 2, 9, 4, 5));
  EXPECT_NE(base, random_block(1, RandomUse::dropout, 2, 3, 9, 5));
  EXPECT_NE(base, random_block(1, RandomUse::dropout, 2, 3, 4, 9));
}

}  // namespace
}  // namespace tide
