// How many images a second are read, altered and normalized for training:
//
//   image_reading FOLDER [THREADS [SIDE [COUNT]]]
//
// reads COUNT samples (2000) of a folder of classes as `tide train` would, at SIDE x SIDE (224), with so many threads
// ahead (1), and prints one line: images per second, and per second and thread.
#include <cstdio>
#include <cstdlib>

#include "base/stopwatch.h"
#include "data/open.h"

namespace {

int run(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: image_reading FOLDER [THREADS [SIDE [COUNT]]]\n");
    return 1;
  }
  const auto number = [&](int i, int otherwise) { return count > i ? std::atoi(words[i]) : otherwise; };
  const int threads = number(2, 1), side = number(3, 224), wanted = number(4, 2000);
  const tide::Split data = tide::open_data({.path = words[1],
                                            .sample = tide::Shape{1, 3, side, side},
                                            .classes = 1000,
                                            .validation = 0,
                                            .threads = threads,
                                            .ahead = 768});
  std::vector<std::int64_t> order;
  for (std::int64_t pass = 0; std::ssize(order) < wanted; ++pass)
    for (const std::int64_t index : tide::shuffled(data.train->size(), tide::kSeed, static_cast<std::uint64_t>(pass)))
      order.push_back(index + pass * data.train->size());
  order.resize(static_cast<std::size_t>(wanted));
  std::vector<float> values(static_cast<std::size_t>(data.train->sample().per_sample()));
  std::vector<std::int32_t> labels(1);
  const tide::Stopwatch watch;
  data.train->expect(order);
  double sum = 0;
  for (const std::int64_t index : order) {
    data.train->read(index, values, labels);
    sum += static_cast<double>(values[values.size() / 2]);
  }
  const double rate = wanted / watch.seconds();
  fmt::print("{} images of {}, {} threads: {:.0f} images/s, {:.0f} a thread (sum {:.3f})\n", wanted, words[1], threads,
             rate, rate / threads, sum);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "image_reading: {}\n", error.what());
    return 1;
  }
}
