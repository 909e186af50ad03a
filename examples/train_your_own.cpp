// A network of your own, trained on the digits that come with the library: first without a budget, then in half of
// the memory. The weights come out the same, bit for bit.
#include <tidepool/tidepool.h>

#include <cstdio>

namespace {

tide::NetworkPtr my_network() {
  tide::Builder net("mine");
  tide::Value x = net.input({1, 1, 8, 8});
  for (const std::int64_t channels : {16, 32, 32, 32}) {
    x = net.convolution(x, {.channels = channels, .window = tide::Window::square(3, 1, 1)});  // kernel, stride, pad
    x = net.relu(net.batch_norm(x));
  }
  x = net.max_pool(x, {.window = tide::Window::square(2, 2)});
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}));
  return std::make_shared<const tide::Network>(std::move(net).build());
}

struct PrintLoss final : tide::TrainingObserver {
  void on_epoch(const EpochInfo& info) override { fmt::print("epoch {}  loss {:.4f}\n", info.epoch, info.loss); }
};

// Returns the memory it took, and a number that is the same only for the same weights.
std::pair<tide::Bytes, std::uint64_t> train(std::optional<tide::Bytes> memory) {
  const tide::DatasetPtr digits = tide::digits();
  const tide::TrainingOptions training{.batch = 64, .epochs = 2};
  auto opened = tide::Session::open(my_network(), tide::training_variants(training, *digits, nullptr),
                                    {.planner = tide::within(memory)});
  // A budget that is too small is an answer; here there is nothing to do but to say so.
  if (const auto* too_small = std::get_if<tide::PlanResult>(&opened)) throw tide::Error(shortage_text(*too_small));
  tide::Session& session = *std::get<std::unique_ptr<tide::Session>>(opened);

  PrintLoss observer;
  tide::train(session, training, *digits, nullptr, observer);
  fmt::print("took {}\n", tide::format_size(session.arena_bytes()));
  return {session.arena_bytes(), session.weights_hash()};
}

}  // namespace

int main() {
  try {
    const auto [peak, weights] = train(std::nullopt);
    const auto [less, same] = train(tide::Bytes(peak.count() / 2));
    fmt::print("the weights are {}\n", weights == same ? "equal" : "different");
    return weights == same && less < peak ? 0 : 1;
  } catch (const tide::Error& error) {
    fmt::print(stderr, "train_your_own: {}\n", error.what());
    return 1;
  }
}
