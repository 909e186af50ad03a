#include "data/open.h"

#include <algorithm>

#include "base/error.h"
#include "data/ahead.h"
#include "data/arrays/number_dataset.h"

namespace tide {
namespace {

namespace fs = std::filesystem;

// What is usual for a kind of data.
struct Usual {
  Crop crop = Crop::none;
  bool flip = false;
  double smallest = 0.08;
  Normalization normalization = {};
  double kept = 1;
};

const Normalization kOfPhotos{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
const Usual kPhotos{Crop::resized, true, 0.08, kOfPhotos, 224.0 / 256};
const Usual kMasked{Crop::resized, true, 0.25, kOfPhotos, 1};
const Usual kCifar{Crop::padded, true, 0.08, {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}, 1};
const Usual kMnist{Crop::none, false, 0.08, {{0.1307, 0.1307, 0.1307}, {0.3081, 0.3081, 0.3081}}, 1};
const Usual kArrays{};

ImageOptions options_of(const DataRequest& request, const Usual& usual, bool training) {
  ImageOptions options{.sample = request.sample,
                       .classes = 0,
                       .normalization = request.normalization.value_or(usual.normalization),
                       .kept = request.kept.value_or(usual.kept),
                       .augmentation = {.crop = request.crop.value_or(usual.crop),
                                        .flip = request.flip.value_or(usual.flip),
                                        .jitter = request.jitter,
                                        .smallest = usual.smallest,
                                        .seed = request.seed},
                       .training = training && request.altered,
                       .mixup = request.mixup,
                       .on_bad_file = request.on_bad_file,
                       .skip_words = request.skip_words,
                       .report = request.report};
  // Grey: one number stands for all three.
  if (request.sample.channels() == 1 && !request.normalization) {
    Normalization& n = options.normalization;
    const auto mean = [](const std::array<double, 3>& v) { return (v[0] + v[1] + v[2]) / 3; };
    n.mean.fill(mean(n.mean));
    n.deviation.fill(mean(n.deviation));
  }
  return options;
}

// Samples come from `train`, and from `validation` where there is one, else from a part of the first.
Split image_split(const DataRequest& request, const Usual& usual, ImageSourcePtr train, ImageSourcePtr validation) {
  const std::int64_t own = train->classes();
  if (!train->has_masks() && own > request.classes)
    throw Error("{} has {} classes, the network {}; name a network with as many (@{})", train->name(), own,
                request.classes, own);
  ImageOptions learning = options_of(request, usual, true), looking = options_of(request, usual, false);
  learning.classes = looking.classes = request.classes;
  DatasetPtr altered = image_dataset(train, learning);
  if (validation) return {altered, image_dataset(validation, looking)};
  SplitIndices parts = split_indices(train->size(), request.validation, request.seed);
  const DatasetPtr plain = image_dataset(train, looking);
  if (parts.validation.empty()) return {altered, nullptr};
  return {subset(altered, std::move(parts.train), train->name() + " (training part)"),
          subset(plain, std::move(parts.validation), train->name() + " (held-out part)")};
}

std::optional<fs::path> first_there(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::exists(folder / name)) return folder / name;
  return std::nullopt;
}

std::vector<fs::path> files_ending(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().ends_with(ending)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

Split open_cifar(const DataRequest& request, const fs::path& folder) {
  std::vector<fs::path> train = files_ending(folder, ".bin");
  const auto is_test = [](const fs::path& path) { return path.filename() == "test_batch.bin"; };
  std::vector<fs::path> test;
  std::copy_if(train.begin(), train.end(), std::back_inserter(test), is_test);
  std::erase_if(train, is_test);
  if (train.empty()) std::swap(train, test);
  return image_split(request, kCifar, cifar_files(train), test.empty() ? nullptr : cifar_files(test));
}

Split open_mnist(const DataRequest& request, const fs::path& folder) {
  const auto pair = [&](const std::string& part) -> ImageSourcePtr {
    const auto images =
        first_there(folder, {(part + "-images-idx3-ubyte").c_str(), (part + "-images.idx3-ubyte").c_str()});
    const auto labels =
        first_there(folder, {(part + "-labels-idx1-ubyte").c_str(), (part + "-labels.idx1-ubyte").c_str()});
    if (!images) return nullptr;
    if (!labels) throw Error("{}: its labels are not beside it ({}-labels-idx1-ubyte)", images->string(), part);
    return idx_files(*images, *labels);
  };
  return image_split(request, kMnist, pair("train"), pair("t10k"));
}

Split open_tars(const DataRequest& request, std::vector<fs::path> all) {
  std::vector<fs::path> validation;
  const auto is_validation = [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name.starts_with("val") || name.starts_with("test");
  };
  if (all.size() > 1) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(validation), is_validation);
    std::erase_if(all, is_validation);
  }
  if (all.empty()) std::swap(all, validation);
  return image_split(request, kPhotos, tar_files(all), validation.empty() ? nullptr : tar_files(validation));
}

Split open_arrays(const DataRequest& request, const fs::path& x, const fs::path& y) {
  NumberArray samples = read_npy(x), labels = read_npy(y);
  const bool pixels = samples.type == NumberType::u8 && samples.shape.size() == 4 && !request.number_labels &&
                      !labels.shape.empty() && labels.elements() == labels.shape[0];
  if (pixels) return image_split(request, kArrays, npy_images(std::move(samples), std::move(labels)), nullptr);
  return split(number_dataset(std::move(samples), std::move(labels), request.sample, request.number_labels),
               request.validation, request.seed);
}

bool has_masks(const fs::path& folder) {
  return fs::is_directory(folder / "images") && fs::is_directory(folder / "masks");
}

Split open_folder(const DataRequest& request, const fs::path& folder) {
  if (first_there(folder, {"data_batch_1.bin", "test_batch.bin"})) return open_cifar(request, folder);
  if (first_there(folder, {"train-images-idx3-ubyte", "train-images.idx3-ubyte"})) return open_mnist(request, folder);
  if (first_there(folder, {"x.npy"})) return open_arrays(request, folder / "x.npy", folder / "y.npy");
  if (std::vector<fs::path> tars = files_ending(folder, ".tar"); !tars.empty()) return open_tars(request, tars);
  const std::optional<fs::path> train = first_there(folder, {"train"});
  const std::optional<fs::path> validation = first_there(folder, {"val", "valid", "validation", "test"});
  if (has_masks(train.value_or(folder)))
    return image_split(request, kMasked, masked_folder(train.value_or(folder)),
                       train && validation ? masked_folder(*validation) : nullptr);
  if (!train) return image_split(request, kPhotos, image_folder(folder), nullptr);
  const ImageSourcePtr learned = image_folder(*train);
  return image_split(request, kPhotos, learned,
                     validation ? image_folder(*validation, learned->class_names()) : nullptr);
}

Split open_path(const DataRequest& request) {
  if (const std::size_t comma = request.path.find(','); comma != std::string::npos)
    return open_arrays(request, request.path.substr(0, comma), request.path.substr(comma + 1));
  const fs::path path = request.path;
  std::error_code error;
  if (!fs::exists(path, error))
    throw Error(
        "there is no data '{}'; it is digits, synthetic, a folder, a .tar file, or two arrays, x.npy,y.npy "
        "(docs/data.md)",
        request.path);
  if (fs::is_directory(path, error)) return open_folder(request, path);
  if (path.extension() == ".tar") return open_tars(request, {path});
  if (path.extension() == ".bin") return image_split(request, kCifar, cifar_files({path}), nullptr);
  throw Error("{}: is no data that is known; name a folder, a .tar file, or two arrays, x.npy,y.npy (docs/data.md)",
              request.path);
}

}  // namespace

Split open_data(const DataRequest& request) {
  Split split = open_path(request);
  if (request.threads < 0) return split;
  const AheadOptions ahead{.threads = request.threads, .samples = request.ahead};
  split.train = read_ahead(split.train, ahead);
  if (split.validation) split.validation = read_ahead(split.validation, ahead);
  return split;
}

ImageOptions image_options(const DataRequest& request) {
  ImageOptions options = options_of(request, request.sample.channels() == 1 ? kMnist : kPhotos, false);
  options.classes = request.classes;
  return options;
}

}  // namespace tide
