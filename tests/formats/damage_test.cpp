// Damaged files of every kind that is read here: they load, or are refused in one line; nothing large is taken for
// them.
#include "formats/damage.h"

#include <fstream>

#include "data/image_files.h"
#include "foreign/lower.h"
#include "formats/network_json.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx_bytes.h"
#include "formats/safetensors.h"
#include "support/temporary_file.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

// Of nothing but what can be damaged: values, which can be anything, are few.
TEST(Damage, OnnxFiles) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  const std::filesystem::path exports = std::filesystem::path(TIDE_TEST_DATA) / "foreign" / "files";
  std::vector<std::string> files{onnx_small()};
  for (const char* name : {"residual.script.onnx", "shuffle.train.onnx", "mobile.fold.onnx"})
    files.push_back(text_of(bytes_of_file(exports / name)));
  unsigned seed = 1;
  for (const std::string& whole : files) {
    const int refused = read_damaged(whole, seed++, {.begins = "net.onnx"}, [](const std::string& text) {
      static_cast<void>(parse_onnx(std::as_bytes(std::span(text)), "net.onnx", {}));
    });
    EXPECT_GT(refused, 50);
    // What can be read is imported or refused likewise.
    read_damaged(whole, seed++, {}, [](const std::string& text) {
      const ForeignGraph graph = parse_onnx(std::as_bytes(std::span(text)), "net.onnx", {});
      static_cast<void>(import_graph(graph));
    });
  }
}

// Through a file, of which the whole has to be read.
void read_damaged_files(const std::string& whole, const std::string& name, unsigned seed,
                        const std::function<void(const std::filesystem::path&)>& read) {
  const TemporaryFile file(name);
  const int refused = read_damaged(whole, seed, {.begins = file.path().string()}, [&](const std::string& text) {
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << text;
    read(file.path());
  });
  EXPECT_GT(refused, 100);
}

TEST(Damage, SafetensorsFiles) {
  const TemporaryFile file("damage.safetensors");
  write_safetensors(file.path(), {{{"format", "pt"}},
                                  {{"conv.weight", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6}},
                                   {"conv.bias", {2}, {1, 2}},
                                   {"count", {}, {3}},
                                   {"none", {0, 4}, {}}}});
  read_damaged_files(text_of(bytes_of_file(file.path())), "damaged.safetensors", 3,
                     [](const std::filesystem::path& path) { static_cast<void>(read_safetensors(path)); });
}

TEST(Damage, NetworkFiles) {
  for (const char* model : {"lenet", "digits", "mobilenet-v3-small@10"})
    read_damaged_files(format_network(make_model(model)), "damaged.json", 4,
                       [](const std::filesystem::path& path) { static_cast<void>(read_network(path)); });
}

}  // namespace
}  // namespace tide::test
