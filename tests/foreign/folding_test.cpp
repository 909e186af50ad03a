// Numbers that depend on the batch, and constants that are computed before there are layers.
#include <gtest/gtest.h>

#include "foreign/graph_maker.h"
#include "foreign/number.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

std::int64_t of_batch(const Number& number, std::int64_t batch) { return number.constant + number.batches * batch; }

TEST(Numbers, AreRightForEveryBatch) {
  std::mt19937 random(3);
  int answers = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto draw = [&] {
      return Number{static_cast<std::int64_t>(random() % 25) - 12,
                    random() % 2 == 0 ? 0 : static_cast<std::int64_t>(random() % 13) - 6};
    };
    const Number a = draw(), b = draw();
    for (std::int64_t batch = 1; batch <= 40; ++batch) {
      const std::int64_t x = of_batch(a, batch), y = of_batch(b, batch);
      const auto expect = [&](const std::optional<Number>& result, std::int64_t wanted, const char* what) {
        if (!result) return;
        ++answers;
        EXPECT_EQ(of_batch(*result, batch), wanted) << what << " of " << x << " and " << y;
      };
      expect(add(a, b), x + y, "sum");
      expect(subtract(a, b), x - y, "difference");
      expect(multiply(a, b), x * y, "product");
      if (y != 0) {
        expect(divide(a, b), x / y, "quotient");
        expect(modulo(a, b, true), x % y, "remainder as in C");
        const std::int64_t rest = x % y;
        expect(modulo(a, b, false), rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest, "remainder");
      }
      EXPECT_EQ(equal(a, b).value_or(x == y), x == y);
      EXPECT_EQ(below(a, b).value_or(x < y), x < y);
    }
  }
  EXPECT_GT(answers, 400000);
}

TEST(Numbers, WhatDoesNotFitIsNothing) {
  const Number largest{std::numeric_limits<std::int64_t>::max()}, smallest{std::numeric_limits<std::int64_t>::min()};
  EXPECT_FALSE(add(largest, {1}));
  EXPECT_FALSE(subtract(smallest, {1}));
  EXPECT_FALSE(multiply(largest, {2}));
  EXPECT_FALSE(divide(smallest, {-1}));
  EXPECT_FALSE(divide({1}, {0}));
  EXPECT_FALSE(modulo({1}, {0}, true));
  EXPECT_EQ(modulo(smallest, {-1}, true), Number{});
  EXPECT_FALSE(multiply(kBatch, kBatch));
  EXPECT_FALSE(equal(kBatch, {3}));
  EXPECT_EQ(equal(kBatch, {0}), false);
  EXPECT_EQ(below({0}, kBatch), true);
}

// A constant that is added to x of the same extents; its values are what comes on top.
std::vector<double> folded(GraphMaker& maker, const std::string& constant) {
  const std::vector<double> x = some_numbers(60);
  std::vector<double> seen = result_of(maker.ends(maker.node("Add", {"x", constant})), 1, x);
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] -= x[i];
  return seen;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) + 1;
  return values;
}

void expect_folded(GraphMaker& maker, const std::string& constant, const std::function<double(std::int64_t)>& wanted) {
  const std::vector<double> seen = folded(maker, constant);
  ASSERT_EQ(seen.size(), 60U);
  for (std::int64_t i = 0; i < 60; ++i)
    EXPECT_NEAR(seen[static_cast<std::size_t>(i)], wanted(i), 1e-6 * (1 + std::abs(wanted(i)))) << i;
}

TEST(Folding, Slices) {
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) {
    // Of 6 x 9 x 11 so that 3 x 4 x 5 are left.
    const Extents extents{6, 9, 11}, kept{3, 4, 5};
    Extents starts, ends, steps;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t step = (random() % 2 == 0 ? 1 : -1) * (random() % 2 == 0 ? 1 : 2);
      const std::int64_t span = (kept[axis] - 1) * std::abs(step), slack = extents[axis] - 1 - span;
      const std::int64_t low = static_cast<std::int64_t>(random()) % (slack + 1);
      const std::int64_t first = step > 0 ? low : low + span;
      std::int64_t end = step > 0 ? low + span + 1 : low - 1;
      const bool from_behind = random() % 2 == 0;
      starts.push_back(from_behind ? first - extents[axis] : first);
      if (end == -1) end = -1000;
      ends.push_back(end);
      steps.push_back(step);
    }
    GraphMaker maker;
    const std::string whole = maker.floats(counted(6 * 9 * 11), extents);
    const std::string part = maker.node(
        "Slice", {whole, maker.whole(starts), maker.whole(ends), maker.whole({0, -2, 2}), maker.whole(steps)});
    expect_folded(maker, part, [&](std::int64_t at) {
      const auto place = [&](std::size_t axis, std::int64_t j) {
        const std::int64_t first = starts[axis] < 0 ? starts[axis] + extents[axis] : starts[axis];
        return first + j * steps[axis];
      };
      return static_cast<double>((place(0, at / 20) * 9 + place(1, at / 5 % 4)) * 11 + place(2, at % 5) + 1);
    });
  }
}

TEST(Folding, GatherTransposeReshapeConcatExpand) {
  GraphMaker gather;
  const std::string rows =
      gather.node("Gather", {gather.floats(counted(3 * 6 * 5), {3, 6, 5}), gather.whole({5, 0, -3, 2})},
                  {{"axis", std::int64_t{1}}});
  expect_folded(gather, rows, [](std::int64_t i) {
    constexpr std::int64_t kRows[] = {5, 0, 3, 2};
    return static_cast<double>(i / 20 * 30 + kRows[i / 5 % 4] * 5 + i % 5 + 1);
  });
  GraphMaker transpose;
  const std::string turned =
      transpose.node("Transpose", {transpose.floats(counted(60), {5, 3, 4})}, {{"perm", Extents{1, 2, 0}}});
  expect_folded(transpose, turned, [](std::int64_t i) { return static_cast<double>(i % 5 * 12 + i / 5 + 1); });
  GraphMaker reshape;
  const std::string seen = reshape.node(
      "Unsqueeze", {reshape.node("Flatten", {reshape.floats(counted(60), {3, 20})}, {{"axis", std::int64_t{0}}}),
                    reshape.whole({0})});
  expect_folded(reshape, reshape.node("Reshape", {reshape.node("Squeeze", {seen}), reshape.whole({3, -1, 5})}),
                [](std::int64_t i) { return static_cast<double>(i + 1); });
  GraphMaker concat;
  const std::string half = concat.floats(counted(20), {1, 4, 5}), other = concat.floats(counted(40), {2, 4, 5});
  expect_folded(concat, concat.node("Concat", {half, other}, {{"axis", std::int64_t{0}}}),
                [](std::int64_t i) { return static_cast<double>(i < 20 ? i + 1 : i - 19); });
  GraphMaker expand;
  expect_folded(expand, expand.node("Expand", {expand.floats(counted(12), {3, 4, 1}), expand.whole({3, 4, 5})}),
                [](std::int64_t i) { return static_cast<double>(i / 5 + 1); });
}

TEST(Folding, FunctionsOfConstants) {
  const auto with = [](const std::string& op, const std::function<double(double, double)>& function) {
    GraphMaker maker;
    const std::string a = maker.floats(counted(60), {3, 4, 5}), b = maker.floats(counted(5), {5});
    expect_folded(maker, maker.node(op, {a, b}),
                  [&](std::int64_t i) { return function(static_cast<double>(i + 1), static_cast<double>(i % 5 + 1)); });
  };
  with("Add", [](double a, double b) { return a + b; });
  with("Sub", [](double a, double b) { return a - b; });
  with("Mul", [](double a, double b) { return a * b; });
  with("Div", [](double a, double b) { return a / b; });
  with("Max", [](double a, double b) { return std::max(a, b); });
  with("Min", [](double a, double b) { return std::min(a, b); });
  const auto of_one = [](const std::string& op, double (*function)(double)) {
    GraphMaker maker;
    expect_folded(maker, maker.node(op, {maker.node("Div", {maker.floats(counted(60), {3, 4, 5}), maker.number(16)})}),
                  [&](std::int64_t i) { return function(static_cast<double>(i + 1) / 16); });
  };
  of_one("Sqrt", [](double x) { return std::sqrt(x); });
  of_one("Exp", [](double x) { return std::exp(x); });
  of_one("Neg", [](double x) { return -x; });
  of_one("Reciprocal", [](double x) { return 1 / x; });
  of_one("Floor", [](double x) { return std::floor(x); });
}

TEST(Folding, ClipsOfNumbers) {
  GraphMaker maker;
  const std::string range = maker.node("Range", {maker.index(0), maker.index(5), maker.index(1)});
  const std::string clipped = maker.node("Clip", {range, maker.index(1), maker.index(3)});
  expect_folded(maker, maker.node("Cast", {clipped}, {{"to", std::int64_t{1}}}),
                [](std::int64_t i) { return static_cast<double>(std::clamp<std::int64_t>(i % 5, 1, 3)); });
}

TEST(Folding, NumbersBecomeFractions) {
  GraphMaker maker;
  const std::string range = maker.node("Range", {maker.index(10), maker.index(0), maker.index(-2)});
  const std::string floats = maker.node("Cast", {range}, {{"to", std::int64_t{1}}});
  expect_folded(maker, floats, [](std::int64_t i) { return static_cast<double>(10 - 2 * (i % 5)); });
}

// What .view(x.size(0), -1), x.size(2) // 2 and the like become, with the batch open and fixed.
class ShapeArithmetic : public testing::TestWithParam<std::int64_t> {
 protected:
  GraphMaker maker_{{6, 4, 5}, GetParam()};
  std::string extent(std::int64_t axis) {
    return maker_.node("Gather", {maker_.node("Shape", {"x"}), maker_.index(axis)});
  }
  std::string as_list(const std::string& number) { return maker_.node("Unsqueeze", {number, maker_.whole({0})}); }
  Shape result(const std::string& shape) {
    const ImportedNetwork imported =
        imported_function(maker_.ends(maker_.node("Tanh", {maker_.node("Reshape", {"x", shape})})));
    return imported.network->layers.back().outputs[0];
  }
  std::string joined(const std::vector<std::string>& parts) {
    return maker_.node("Concat", parts, {{"axis", std::int64_t{0}}});
  }
};

TEST_P(ShapeArithmetic, OfTheBatchAndOneOpenExtent) {
  EXPECT_EQ(result(joined({as_list(extent(0)), maker_.whole({-1})})).per_sample(), 120);
}

TEST_P(ShapeArithmetic, HalfTheChannels) {
  const std::string half = maker_.node("Div", {extent(1), maker_.index(2)});
  const std::string shape = joined({as_list(extent(0)), maker_.whole({2}), as_list(half), maker_.whole({20})});
  // A function of single elements comes before the reshape.
  maker_.ends(maker_.node("Reshape", {"x", shape}));
  EXPECT_EQ(imported_function(maker_.graph).network->layers.back().outputs[0], (Shape{1, 2, 3, 20}));
}

TEST_P(ShapeArithmetic, ThePartOfAShapeAndItsProduct) {
  const std::string behind = maker_.node("Shape", {"x"}, {{"start", std::int64_t{1}}});
  const std::string all = maker_.node("ReduceProd", {behind}, {{"keepdims", std::int64_t{1}}});
  maker_.ends(maker_.node("Reshape", {"x", joined({as_list(extent(0)), all})}));
  EXPECT_EQ(imported_function(maker_.graph).network->layers.back().outputs[0].per_sample(), 120);
}

TEST_P(ShapeArithmetic, TheBatchTimesAndBySomething) {
  const std::string twice = maker_.node("Mul", {extent(0), maker_.index(2)});
  const std::string batch = maker_.node("Div", {twice, maker_.index(2)});
  maker_.ends(maker_.node("Reshape", {"x", joined({as_list(batch), maker_.whole({3, 40})})}));
  EXPECT_EQ(imported_function(maker_.graph).network->layers.back().outputs[0], (Shape{1, 3, 40}));
}

TEST_P(ShapeArithmetic, WhatMixesTheBatchWithOthersIsRefused) {
  const std::string twice = maker_.node("Mul", {extent(0), maker_.index(2)});
  maker_.ends(maker_.node("Reshape", {"x", joined({as_list(twice), maker_.whole({3, 20})})}));
  const std::string error = error_of([&] { static_cast<void>(imported_function(maker_.graph)); });
  EXPECT_NE(error.find("mixes the batch with other axes"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Batches, ShapeArithmetic, testing::Values(-1, 7),
                         [](const auto& entry) { return entry.param < 0 ? "open" : "fixed"; });

TEST(Folding, ConstantsThatWouldBeTooLargeAreRefused) {
  GraphMaker maker;
  const std::string large = maker.node("Expand", {maker.floats({1, 2}, {2}), maker.whole({1 << 20, 1 << 20, 2})});
  const std::string error = error_of([&] {
    static_cast<void>(imported_function(maker.ends(maker.node("Add", {"x", large}))));
  });
  EXPECT_NE(error.find("more than"), std::string::npos) << error;
  // One after the other, each of them small.
  GraphMaker many;
  std::string sum = "x";
  for (int i = 0; i < 700; ++i)
    sum = many.node(
        "Add", {sum, many.node("ReduceProd", {many.node("Range", {many.index(0), many.index(1000), many.index(1)})})});
  EXPECT_NE(error_of([&] { static_cast<void>(imported_function(many.ends(sum))); }).find("more elements than"),
            std::string::npos);
}

}  // namespace
}  // namespace tide::test
