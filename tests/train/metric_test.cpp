// What a step and an evaluation say of a batch, computed again from what the network answered.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "network/adapt.h"
#include "network/kind.h"
#include "train/scores.h"
#include "train/small_session.h"

namespace tide {
namespace {

using test::open_session;

// Noise, with labels that are given.
class Noise final : public Dataset {
 public:
  Noise(const Network& network, std::vector<std::int32_t> labels)
      : sample_(network.input_sample()), per_sample_(network.labels_of_data()), labels_(std::move(labels)) {}
  [[nodiscard]] std::string name() const override { return "noise"; }
  [[nodiscard]] std::int64_t size() const override { return std::ssize(labels_) / per_sample_; }
  [[nodiscard]] Shape sample() const override { return sample_; }
  [[nodiscard]] std::int64_t classes() const override { return 1; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return per_sample_; }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(index + 1) * static_cast<double>(i + 1)));
    std::copy_n(labels_.begin() + index * per_sample_, per_sample_, labels.begin());
  }

 private:
  Shape sample_;
  std::int64_t per_sample_;
  std::vector<std::int32_t> labels_;
};

enum class Loss { squares, binary };

NetworkPtr number_network(Loss loss, std::int64_t channels) {
  Builder net("numbers");
  Value x = net.input({1, 2, 3, 4}, "in");
  x = net.convolution(x, {.channels = channels, .window = Window::square(3, 1, 1)}, "conv");
  loss == Loss::squares ? net.mean_squared_error(x, {}, "loss") : net.sigmoid_cross_entropy(x, {}, "loss");
  return std::make_shared<const Network>(std::move(net).build());
}

TEST(Metric, OfNumbersIsTheMeanOverAllOfThem) {
  for (const Loss loss : {Loss::squares, Loss::binary})
    for (const std::int64_t channels : {1, 5}) {
      const NetworkPtr network = number_network(loss, channels);
      std::vector<std::int32_t> wanted(static_cast<std::size_t>(7 * 12 * channels));
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = std::bit_cast<std::int32_t>(i % 3 == 0 ? 1.0F : 0.0F);
      const Noise data(*network, wanted);
      SessionOptions options = test::session_options();
      options.keep_results = true;
      const test::SessionPtr session = open_session(network, {{3, false}, {1, false}}, options);
      double sum = 0, right = 0;
      const Session::Evaluation evaluation = session->evaluate(data, 3, [&](const Session::Answers& answers) {
        ASSERT_EQ(answers.results.size(), 1U);
        const std::vector<float>& values = answers.results[0].values;  // sigmoid(x) of the binary one
        for (std::size_t n = 0; n < answers.samples.size(); ++n)
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t p = 0; p < 12; ++p) {
              const auto offset = static_cast<std::int64_t>(n) * 12 * channels;
              const double y = static_cast<double>(values[static_cast<std::size_t>(offset + c * 12 + p)]);
              const double t = static_cast<double>(
                  std::bit_cast<float>(answers.labels[static_cast<std::size_t>(offset + p * channels + c)]));
              sum += loss == Loss::squares ? (y - t) * (y - t) : -t * std::log(y) - (1 - t) * std::log(1 - y);
              right += (y > 0.5) == (t > 0.5) ? 1 : 0;
            }
      });
      const auto all = static_cast<double>(wanted.size());
      EXPECT_NEAR(evaluation.loss, sum / all, 1e-5 * sum / all);
      ASSERT_EQ(evaluation.accuracy.has_value(), loss == Loss::binary);
      if (evaluation.accuracy) {
        EXPECT_NEAR(*evaluation.accuracy, right / all, 1e-12);
      }
    }
}

TEST(Metric, OfLabelsWithGapsCountsThoseThatCount) {
  Builder net("pixels");
  Value x = net.input({1, 2, 3, 4}, "in");
  x = net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "conv");
  net.softmax_cross_entropy(x, {}, "loss");
  const NetworkPtr network = adapt(std::make_shared<const Network>(std::move(net).build()), {.gaps_in_labels = true});
  std::vector<std::int32_t> labels(7 * 12);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 5 == 0 || i < 30 ? -1 : static_cast<int>(i % 4);
  const Noise data(*network, labels);
  SessionOptions options = test::session_options();
  options.keep_results = true;
  const test::SessionPtr session =
      open_session(network, {{7, false}, {3, false}, {2, false}, {1, false}, {7, true}}, options);
  Scores scores(*network);
  const Session::Evaluation whole =
      session->evaluate(data, 7, [&](const Session::Answers& answers) { scores.add(answers); });
  ASSERT_TRUE(whole.accuracy);
  EXPECT_NEAR(*whole.accuracy, scores.top1(), 1e-12);
  EXPECT_GT(whole.loss, 0);
  for (const std::int64_t batch : {3, 2, 1}) {
    const Session::Evaluation pieces = session->evaluate(data, batch);
    EXPECT_NEAR(pieces.loss, whole.loss, 1e-5 * whole.loss) << batch;
    EXPECT_NEAR(pieces.accuracy.value_or(-1), *whole.accuracy, 1e-12) << batch;
  }
  std::vector<std::int64_t> all(7);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(session->run({7, true}, data, all, 0).answers,
            static_cast<double>(std::ranges::count_if(labels, [](std::int32_t label) { return label >= 0; })));
}

}  // namespace
}  // namespace tide
