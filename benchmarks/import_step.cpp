// One step of an ONNX model in double precision, for import_vs_torch to compare:
//
//   import_step model.onnx FOLDER [--forward] [--floats] [--loss NAME] [--input 3x64x64]
//
// reads FOLDER/input.f64 (a batch, row-major) and FOLDER/labels.i64, runs one training step, without dropout and drop
// path, on the double interpreter, and writes FOLDER/loss.txt and, for each array of the model, its gradient:
// FOLDER/gradients.f64, with names and counts in FOLDER/gradients.txt; running statistics likewise, in statistics.f64
// and .txt. With --floats the cpu backend takes the same step in floats, too: its gradients go into
// float_gradients.f64, in the same order, and its loss into float_loss.txt. With --forward it runs the model without a
// loss, as in evaluation, and writes FOLDER/output.f64. Notes of the import go to standard output.
#include <chrono>
#include <fstream>
#include <iostream>

#include "backend/reference/interpreter.h"
#include "foreign/lower.h"
#include "formats/onnx/onnx.h"
#include "network/reordered.h"
#include "step/build.h"
#include "train/session.h"

namespace tide {
namespace {

template <typename Number>
std::vector<Number> read_numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error("{} cannot be read", path);
  std::vector<Number> numbers(static_cast<std::size_t>(file.tellg()) / sizeof(Number));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
  return numbers;
}

void write_numbers(std::ofstream& file, const std::vector<double>& numbers) {
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(double)));
}

Network without_random(const Network& network) {
  Network changed = network;
  for (Layer& layer : changed.layers) {
    if (auto* const dropout = std::get_if<DropoutOptions>(&layer.options)) dropout->rate = 0;
    if (auto* const path = std::get_if<DropPathOptions>(&layer.options)) path->rate = 0;
  }
  return changed;
}

struct Arguments {
  std::string model, folder;
  ImportOptions options;
  bool forward = false, floats = false;
};

// The batch of the folder, as floats.
class OneBatch final : public Dataset {
 public:
  OneBatch(Shape sample, std::int64_t labels, std::int64_t classes, const std::vector<double>& values,
           std::vector<std::int64_t> numbers)
      : sample_(sample), labels_(labels), classes_(classes), values_(values), numbers_(std::move(numbers)) {}
  [[nodiscard]] std::string name() const override { return "one batch"; }
  [[nodiscard]] std::int64_t size() const override { return std::ssize(values_) / sample_.elements(); }
  [[nodiscard]] Shape sample() const override { return sample_; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return labels_; }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const std::int64_t positions = sample_.positions(), channels = sample_.channels();
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < positions; ++p)
        values[static_cast<std::size_t>(p * channels + c)] =
            static_cast<float>(values_[static_cast<std::size_t>((index * channels + c) * positions + p)]);
    for (std::int64_t i = 0; i < labels_; ++i)
      labels[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(numbers_[static_cast<std::size_t>(index * labels_ + i)]);
  }

 private:
  Shape sample_;
  std::int64_t labels_, classes_;
  const std::vector<double>& values_;
  std::vector<std::int64_t> numbers_;
};

Arguments parse(int count, char** words) {
  Arguments arguments;
  std::vector<std::string> plain;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--forward")
      arguments.forward = true, arguments.options.loss = "";
    else if (word == "--floats")
      arguments.floats = true;
    else if (word == "--loss" && i + 1 < count)
      arguments.options.loss = words[++i];
    else if (word == "--input" && i + 1 < count)
      arguments.options.input = words[++i];
    else
      plain.push_back(word);
  }
  if (plain.size() != 2) throw Error("give a model and a folder");
  arguments.model = plain[0];
  arguments.folder = plain[1] + "/";
  return arguments;
}

class ImportedStep {
 public:
  explicit ImportedStep(const Arguments& arguments)
      : arguments_(arguments),
        graph_(read_onnx(arguments.model)),
        imported_(import_graph(graph_, arguments.options)),
        network_(std::make_shared<const Network>(without_random(*imported_.network))) {
    for (const WeightName& weight : imported_.weights) weights_[weight.parameter] = &weight;
    for (const std::string& note : imported_.notes) fmt::print("note: {}\n", note);
  }

  void run() {
    const std::vector<double> input = read_numbers<double>(arguments_.folder + "input.f64");
    const auto batch = static_cast<std::int64_t>(input.size()) / network_->input_sample().elements();
    StepOptions options;
    options.batch = batch;
    options.training = !arguments_.forward;
    options.optimizer.kind = OptimizerKind::sgd;
    step_ = std::make_shared<const Step>(build_step(network_, options));
    ReferenceInterpreter interpreter(step_);
    set_parameters(interpreter);
    set_inputs(interpreter, input);
    interpreter.run(
        {.seed = 1, .step = 0, .learning_rate = 1, .update_count = 1, .first_sample = 0, .global_batch = batch});
    if (arguments_.forward) return write_output(interpreter);
    write_loss(interpreter, batch);
    write_gradients(interpreter);
    write_statistics(interpreter);
    if (arguments_.floats) run_floats(input, batch);
  }

 private:
  // A rate so large that what a weight was does not matter beside its change, from which the gradient follows.
  static constexpr double kFloatRate = 16777216;

  void run_floats(const std::vector<double>& input, std::int64_t batch) const {
    SessionOptions options;
    options.policy = "liveness";
    options.profile = "none";
    options.planner.parameters = Parameters::device;
    options.precision = Precision::fp32;
    options.optimizer.kind = OptimizerKind::sgd;
    options.optimizer.momentum = 0;
    options.optimizer.weight_decay = 0;
    auto opened = Session::open(network_, {{batch, true}}, options);
    auto& session = *std::get<std::unique_ptr<Session>>(opened);
    std::vector<std::vector<float>> before;
    for (std::size_t p = 0; p < network_->parameters.size(); ++p) {
      const WeightName& weight = weight_of(ParameterId(p));
      const std::vector<float> values = values_of(tensor_of_weight(weight));
      before.push_back(to_parameter_order(weight, std::span<const float>(values)));
      session.set_parameter(ParameterId(p), before.back());
    }
    const OneBatch data(network_->input_sample(), network_->labels_per_sample(), network_->classes(), input,
                        read_numbers<std::int64_t>(arguments_.folder + "labels.i64"));
    std::vector<std::int64_t> samples(static_cast<std::size_t>(batch));
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int64_t>(i);
    const auto metric = session.run({batch, true}, data, samples, kFloatRate);
    std::ofstream(arguments_.folder + "float_loss.txt") << fmt::format("{:.9g}\n", metric.loss);
    std::ofstream values(arguments_.folder + "float_gradients.f64", std::ios::binary);
    for (const Tensor& tensor : step_->tensors) {
      if (tensor.tensor_class != TensorClass::parameter_gradient) continue;
      const std::vector<float> after = session.parameter(tensor.parameter);
      const std::vector<float>& was = before[tensor.parameter.index()];
      std::vector<double> gradient;
      for (std::size_t i = 0; i < after.size(); ++i)
        gradient.push_back((static_cast<double>(was[i]) - static_cast<double>(after[i])) / kFloatRate);
      write_numbers(values, to_array_order(weight_of(tensor.parameter), std::span<const double>(gradient)));
    }
  }

  const ForeignTensor& tensor_of_weight(const WeightName& weight) const {
    const auto constant = graph_.constants.find(weight.array);
    return constant != graph_.constants.end() ? constant->second : imported_.made.at(weight.array);
  }

  const WeightName& weight_of(ParameterId id) const { return *weights_.at(network_->parameters[id.index()].name); }

  void set_parameters(ReferenceInterpreter& interpreter) {
    for (const Storage& storage : step_->storages) {
      if (!storage.persistent || !storage.entry.valid() || !step_->tensor(storage.entry).parameter.valid()) continue;
      if (storage.tensor_class != TensorClass::parameter && storage.tensor_class != TensorClass::running_statistics)
        continue;
      const WeightName& weight = weight_of(step_->tensor(storage.entry).parameter);
      const std::vector<double> values = doubles_of(tensor_of_weight(weight));
      interpreter.set(storage.entry, to_parameter_order(weight, std::span<const double>(values)));
    }
  }

  void set_inputs(ReferenceInterpreter& interpreter, const std::vector<double>& input) {
    for (std::size_t t = 0; t < step_->tensors.size(); ++t) {
      const Tensor& tensor = step_->tensors[t];
      if (tensor.tensor_class != TensorClass::input) continue;
      if (tensor.role == Role::x) {
        interpreter.set_logical(TensorId(t), input);
        continue;
      }
      std::vector<double> labels;
      for (const std::int64_t label : read_numbers<std::int64_t>(arguments_.folder + "labels.i64"))
        labels.push_back(static_cast<double>(label));
      interpreter.set_logical(TensorId(t), labels);
    }
  }

  void write_loss(const ReferenceInterpreter& interpreter, std::int64_t batch) const {
    double loss = 0;
    for (std::size_t t = 0; t < step_->tensors.size(); ++t)
      if (step_->tensors[t].tensor_class == TensorClass::metric)
        loss += interpreter.get(TensorId(t))[0] / static_cast<double>(batch * network_->labels_per_sample());
    std::ofstream(arguments_.folder + "loss.txt") << fmt::format("{:.17g}\n", loss);
  }

  void write_gradients(const ReferenceInterpreter& interpreter) const {
    std::ofstream names(arguments_.folder + "gradients.txt");
    std::ofstream values(arguments_.folder + "gradients.f64", std::ios::binary);
    for (std::size_t t = 0; t < step_->tensors.size(); ++t) {
      const Tensor& tensor = step_->tensors[t];
      if (tensor.tensor_class != TensorClass::parameter_gradient) continue;
      const std::vector<double> gradient = interpreter.get(TensorId(t));
      const WeightName& weight = weight_of(tensor.parameter);
      names << weight.array << ' ' << gradient.size() << '\n';
      write_numbers(values, to_array_order(weight, std::span<const double>(gradient)));
    }
  }

  void write_statistics(const ReferenceInterpreter& interpreter) const {
    std::ofstream names(arguments_.folder + "statistics.txt");
    std::ofstream values(arguments_.folder + "statistics.f64", std::ios::binary);
    for (const Storage& storage : step_->storages) {
      if (storage.tensor_class != TensorClass::running_statistics) continue;
      const std::vector<double>& after = interpreter.get(storage.exit);
      names << weight_of(step_->tensor(storage.entry).parameter).array << ' ' << after.size() << '\n';
      write_numbers(values, after);
    }
  }

  void write_output(const ReferenceInterpreter& interpreter) const {
    std::optional<TensorId> last;
    for (std::uint32_t t = 0; t < step_->ordered_tasks; ++t)
      for (const Operand& operand : step_->operands_of(TaskId(t)))
        if (operand.access == Access::write && operand.role == Role::y) last = operand.tensor;
    std::ofstream values(arguments_.folder + "output.f64", std::ios::binary);
    write_numbers(values, interpreter.get_logical(*last));
  }

  Arguments arguments_;
  ForeignGraph graph_;
  ImportedNetwork imported_;
  NetworkPtr network_;
  std::map<std::string, const WeightName*> weights_;
  StepPtr step_;
};

}  // namespace
}  // namespace tide

int main(int count, char** words) try {
  const auto start = std::chrono::steady_clock::now();
  tide::ImportedStep(tide::parse(count, words)).run();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  fmt::print("seconds: {:.1f}\n", passed.count());
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
