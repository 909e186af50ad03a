// Data of your own: a Dataset says what its samples look like and fills in one at a time. Here they are made up: rings
// and blobs in noise, which a small network learns to tell apart.
#include <tidepool/tidepool.h>

#include <cmath>
#include <cstdio>
#include <random>

namespace {

class Rings final : public tide::Dataset {
 public:
  std::string name() const override { return "rings and blobs"; }
  std::int64_t size() const override { return 1200; }
  tide::Shape sample() const override { return {1, 1, 12, 12}; }  // batch 1, channels, height, width
  std::int64_t classes() const override { return 2; }
  std::int64_t labels_per_sample() const override { return 1; }
  // Straight into the step's input, channels last. May be called from several threads, so it keeps no state.
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    std::minstd_rand random(static_cast<unsigned>(index + 1));
    std::normal_distribution<float> noise(0, 0.3F);
    const bool ring = index % 2 == 0;
    for (int y = 0; y < 12; ++y)
      for (int x = 0; x < 12; ++x) {
        const double radius = std::hypot(x - 5.5, y - 5.5);
        const bool inside = ring ? radius > 3 && radius < 5 : radius < 3.5;
        values[static_cast<std::size_t>(12 * y + x)] = (inside ? 1.0F : 0.0F) + noise(random);
      }
    labels[0] = ring ? 1 : 0;
  }
};

void run() {
  tide::Builder net("rings");
  tide::Value x = net.input({1, 1, 12, 12});
  x = net.relu(net.convolution(x, {.channels = 8, .window = tide::Window::square(3, 2, 1)}));
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 2}));
  const auto network = std::make_shared<const tide::Network>(std::move(net).build());

  const tide::Split data = tide::split(std::make_shared<Rings>());  // a fifth is held out
  const tide::TrainingOptions training{.epochs = 2, .schedule = {.base = 0.02}};
  auto opened = tide::Session::open(network, training_variants(training, *data.train, data.validation.get()),
                                    {.planner = tide::within(tide::parse_size("512KiB"))});
  if (const auto* too_small = std::get_if<tide::PlanResult>(&opened)) throw tide::Error(shortage_text(*too_small));
  tide::Session& session = *std::get<std::unique_ptr<tide::Session>>(opened);
  tide::train(session, training, *data.train);
  const tide::Session::Evaluation result = session.evaluate(*data.validation, training.batch);
  fmt::print("held out: loss {:.4f}, accuracy {:.1f}%\n", result.loss, 100 * result.accuracy.value_or(0));
}

}  // namespace

int main() try { run(); } catch (const tide::Error& error) {
  fmt::print(stderr, "custom_dataset: {}\n", error.what());
  return 1;
}
