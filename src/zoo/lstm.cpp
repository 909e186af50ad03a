// A stack of LSTM layers (S. Hochreiter and J. Schmidhuber, 1997), unrolled over time into
// plain layers, with a classifier and a loss at every step, as in the sublinear paper.
//
//   gates: i, g, o = sigmoid, tanh, sigmoid of (W x + b + U h'), f = sigmoid(Wf x + bf + Uf h')
//   c = i g + f c',  h = o tanh(c)
//
// All steps share their weights. The first step has neither h' nor c', and so no forget
// gate; that is why f has weights of its own instead of a fourth part of W and U.
#include <optional>

#include "zoo/families.h"

namespace tide {
namespace {

// The layer that made each set of shared weights, once there is one.
struct Weights {
  std::optional<Value> input, hidden, forget_input, forget_hidden;
};

struct State {
  Value h, c;
};

class Unroller {
 public:
  Unroller(Builder& net, std::int64_t hidden) : net_(net), hidden_(hidden) {}

  State step(Weights& weights, Value x, const std::optional<State>& before, const std::string& name) {
    const Value gates =
        project(weights.input, weights.hidden, x, before, 3 * hidden_, name, {"input", "hidden", "gates"});
    const std::vector<Value> parts = net_.split(gates, {hidden_, hidden_, hidden_}, name + ".split");
    const Value i = net_.sigmoid(parts[0], name + ".i");
    const Value g = net_.tanh(parts[1], name + ".g");
    const Value o = net_.sigmoid(parts[2], name + ".o");
    Value c = net_.multiply(i, g, name + ".new");
    if (before) {
      const Value f = net_.sigmoid(project(weights.forget_input, weights.forget_hidden, x, before, hidden_, name,
                                           {"forget_input", "forget_hidden", "forget"}),
                                   name + ".f");
      c = net_.add({c, net_.multiply(f, before->c, name + ".kept")}, name + ".c");
    }
    return {net_.multiply(o, net_.tanh(c, name + ".c_tanh"), name + ".h"), c};
  }

  // Fully connected, with weights made at the first call and shared by the later ones.
  Value shared(std::optional<Value>& weights, Value x, const FullyConnectedOptions& options, const std::string& name) {
    if (weights) net_.sharing(*weights);
    const Value y = net_.fully_connected(x, options, name);
    if (!weights) weights = y;
    return y;
  }

 private:
  struct Names {
    const char *input, *hidden, *sum;
  };

  Value project(std::optional<Value>& from_input, std::optional<Value>& from_hidden, Value x,
                const std::optional<State>& before, std::int64_t channels, const std::string& name,
                const Names& names) {
    const Value a = shared(from_input, x, {.channels = channels}, name + "." + names.input);
    if (!before) return a;
    const Value b = shared(from_hidden, before->h, {.channels = channels, .bias = false}, name + "." + names.hidden);
    return net_.add({a, b}, name + "." + names.sum);
  }

  Builder& net_;
  std::int64_t hidden_;
};

}  // namespace

Network make_lstm(const ZooRequest& request) {
  const std::int64_t layers = request.numbers[0], hidden = request.numbers[1], steps = request.numbers[2];
  const Shape& sample = request.sample;
  if (layers < 1 || hidden < 1 || steps < 1 || layers > kMostUnits || steps > kMostUnits || layers * steps > kMostUnits)
    throw Error("{}: layers, hidden units and steps must be at least 1, layers x steps at most {}", request.name,
                kMostUnits);
  if (sample.positions() != 1 || sample.channels() % steps != 0)
    throw Error("{}: the sample {} is not {} steps of one vector each; use for instance {}x1x1", request.name,
                sample_text(sample), steps, checked_multiply(50, steps));

  Builder net(request.name);
  Unroller unroller(net, hidden);
  const std::vector<std::int64_t> parts(static_cast<std::size_t>(steps), sample.channels() / steps);
  const std::vector<Value> inputs = net.split(net.input(sample, "data"), parts, "time");
  std::vector<Weights> weights(static_cast<std::size_t>(layers));
  std::vector<std::optional<State>> states(static_cast<std::size_t>(layers));
  std::optional<Value> output;
  for (std::int64_t t = 0; t < steps; ++t) {
    Value x = inputs[static_cast<std::size_t>(t)];
    for (std::size_t layer = 0; layer < states.size(); ++layer) {
      states[layer] = unroller.step(weights[layer], x, states[layer], fmt::format("layer{}.step{}", layer + 1, t + 1));
      x = states[layer]->h;
    }
    x = unroller.shared(output, x, {.channels = request.classes}, fmt::format("output.step{}", t + 1));
    net.softmax_cross_entropy(x, {.weight = 1.0 / static_cast<double>(steps), .label_offset = t},
                              fmt::format("softmax.step{}", t + 1));
  }
  return std::move(net).build();
}

}  // namespace tide
