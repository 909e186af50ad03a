// Damaged data of every kind but images (images_test): it is read, or refused in one line; nothing large is taken for
// it.
#include "formats/damage.h"

#include "data/image_files.h"
#include "data/open.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

namespace fs = std::filesystem;

// All of it, whatever it says.
void read_all(const fs::path& path, std::int64_t classes, const Shape& sample) {
  DataRequest request{.path = path.string(), .sample = sample, .classes = classes};
  request.threads = -1;
  const Split data = open_data(request);
  for (const DatasetPtr& part : {data.train, data.validation}) {
    if (part == nullptr) continue;
    std::vector<float> values(static_cast<std::size_t>(part->sample().per_sample()));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(part->labels_per_sample()));
    for (std::int64_t i = 0; i < std::min<std::int64_t>(part->size(), 50); ++i) part->read(i, values, labels);
  }
}

// One file of a folder is damaged.
void read_damaged_folder(const TemporaryFolder& folder, const std::string& file, unsigned seed,
                         const std::function<void()>& read) {
  const std::string whole = text_of(bytes_of_file(folder.path() / file));
  const int refused = read_damaged(whole, seed, {.begins = folder.path().string()}, [&](const std::string& text) {
    write_bytes(folder.path() / file, text);
    read();
  });
  write_bytes(folder.path() / file, whole);
  EXPECT_GT(refused, 50) << file;
}

TEST(DamagedData, NpyFiles) {
  const TemporaryFolder folder("damaged_npy");
  std::string pixels(6 * 3 * 4 * 4, '\x40'), numbers(6 * 5 * sizeof(float), '\0');
  write_bytes(folder.path() / "x.npy", npy("|u1", "(6, 3, 4, 4)", pixels));
  write_bytes(folder.path() / "y.npy", npy("<i8", "(6,)", std::string(6 * sizeof(std::int64_t), '\0')));
  const auto read = [&] { read_all(folder.path(), 3, {1, 3, 4, 4}); };
  read_damaged_folder(folder, "x.npy", 1, read);
  read_damaged_folder(folder, "y.npy", 2, read);
  const TemporaryFolder floats("damaged_floats");
  write_bytes(floats.path() / "x.npy", npy("<f4", "(6, 5)", numbers));
  write_bytes(floats.path() / "y.npy", npy("<i4", "(6,)", std::string(6 * sizeof(std::int32_t), '\0')));
  read_damaged_folder(floats, "x.npy", 3, [&] { read_all(floats.path(), 3, {1, 5}); });
  read_damaged_folder(floats, "y.npy", 4, [&] { read_all(floats.path(), 3, {1, 5}); });
}

TEST(DamagedData, IdxFiles) {
  const TemporaryFolder folder("damaged_idx");
  const std::string kind("\0\0\x08", 3);
  write_bytes(folder.path() / "train-images-idx3-ubyte",
              kind + '\3' + big_endian(5) + big_endian(4) + big_endian(4) + std::string(5 * 16, '\x21'));
  write_bytes(folder.path() / "train-labels-idx1-ubyte", kind + '\1' + big_endian(5) + std::string("\0\1\2\0\1", 5));
  const auto read = [&] { read_all(folder.path(), 10, {1, 1, 4, 4}); };
  read_damaged_folder(folder, "train-images-idx3-ubyte", 5, read);
  read_damaged_folder(folder, "train-labels-idx1-ubyte", 6, read);
}

TEST(DamagedData, CifarFiles) {
  const TemporaryFolder folder("damaged_cifar");
  std::string records;
  for (int i = 0; i < 3; ++i) records += std::string(1, static_cast<char>(i)) + std::string(3 * 32 * 32, '\x11');
  write_bytes(folder.path() / "data_batch_1.bin", records);
  write_bytes(folder.path() / "test_batch.bin", records);
  read_damaged_folder(folder, "data_batch_1.bin", 7, [&] { read_all(folder.path(), 10, {1, 3, 32, 32}); });
}

// Headers that were damaged are given their sums again, in every second file: most would not be looked at else.
void mend_sums(std::string& text) {
  for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
    if (text.compare(at + 257, 5, "ustar") != 0) continue;
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(text[at + i]);
    fmt::format("{:06o}", sum).copy(&text[at + 148], 6);
  }
}

TEST(DamagedData, TarFiles) {
  const TemporaryFolder folder("damaged_tar");
  const std::string picture = text_of(bytes_of_file(image_file("colours.png")));
  std::string whole;
  for (int i = 0; i < 4; ++i) {
    whole += tar_member(fmt::format("some/{}.png", i), picture);
    whole += tar_member(fmt::format("some/{}.cls", i), fmt::format("{}\n", i % 2));
  }
  whole += std::string(1024, '\0');
  const fs::path file = folder.path() / "train.tar";
  int count = 0;
  const int refused = read_damaged(whole, 8, {.mutations = 600, .begins = file.string()}, [&](std::string text) {
    if (++count % 2 == 0) mend_sums(text);
    write_bytes(file, text);
    read_all(file, 3, {1, 3, 8, 8});
  });
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tide::test
