// Runs single tasks on a backend, with every operand in memory of its own or with an
// in-place pair in one, and fills steps with test values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/reference/interpreter.h"
#include "base/bfloat16.h"
#include "network/kind.h"
#include "step/build.h"

namespace tide::test {

// The backend that the tests of this binary are about; the one in tests/gpu says cuda.
#ifndef TIDE_TESTED_BACKEND
#define TIDE_TESTED_BACKEND "cpu"
#endif

// Why there is none in this build or on this machine.
inline std::string& no_backend() {
  static std::string reason;
  return reason;
}

// Null where there is none. With full precision; `threads` are those of the cpu backend. A GPU's
// is made once, since that takes a while.
inline std::shared_ptr<Backend> tested_backend(int threads = 0) {
  static std::map<int, std::shared_ptr<Backend>> made;
  const bool cpu = std::string_view(TIDE_TESTED_BACKEND) == "cpu";
  std::shared_ptr<Backend>& backend = made[cpu ? threads : 0];
  if (backend != nullptr || (!cpu && !no_backend().empty())) return backend;
  try {
    backend =
        make_backend(TIDE_TESTED_BACKEND, {.threads = threads, .precision = Precision::fp32, .deterministic = true});
  } catch (const Error& error) {
    no_backend() = error.what();
  }
  return backend;
}

inline StepOptions step_options(std::int64_t batch, Rules rules = Rules::minimal, bool training = true) {
  StepOptions options;
  options.batch = batch;
  options.rules = rules;
  options.training = training;
  return options;
}

inline StepState test_state(const Step& step) {
  return {.seed = 7,
          .step = 3,
          .learning_rate = 0.1,
          .update_count = 4,
          .first_sample = 5,
          .global_batch = step.options.batch + 1};
}

// Rounds to what a backend with floats can hold.
inline std::vector<double> as_floats(std::vector<double> values) {
  for (double& value : values) value = static_cast<double>(static_cast<float>(value));
  return values;
}

// Rounds to what memory of this type can hold.
inline std::vector<double> as_stored(DataType type, std::vector<double> values) {
  if (type != DataType::bf16) return as_floats(std::move(values));
  for (double& value : values) value = static_cast<double>(BFloat16(value));
  return values;
}

// Of losses that compare with numbers: their bits, of which few are set, so that they pass through a float.
inline void fill_float_labels(const Step& step, std::mt19937& generator, std::vector<double>& labels) {
  const auto bits_of = [](float value) { return static_cast<double>(std::bit_cast<std::int32_t>(value)); };
  const std::int64_t per_sample = step.network->labels_per_sample();
  for (const LossLabels& loss : loss_labels(*step.network)) {
    const std::int64_t floats = loss.floats ? loss.count : loss.counted ? 1 : 0;
    const std::int64_t first = loss.offset + loss.count - floats;
    for (std::int64_t n = 0; n * per_sample < static_cast<std::int64_t>(labels.size()); ++n) {
      double* const own = labels.data() + n * per_sample + first;
      // Probabilities of classes have a sum of 1: each class but the last takes a part of what is left.
      float left = 1;
      for (std::int64_t i = 0; i < floats; ++i) {
        float value = static_cast<float>(generator() % 65) / 64.0F;
        if (loss.classes > 0) {
          const std::int64_t place = i % loss.classes;
          if (place == 0) left = 1;
          value = place + 1 == loss.classes ? left : std::min(left, value / 4);
          left -= value;
        }
        own[i] = bits_of(loss.counted ? 1.25F : value);
      }
    }
  }
}

// Random values for whatever a step reads before it has made it.
inline void fill_inputs(const Step& step, ReferenceInterpreter& interpreter, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.1, 1.0);
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const TensorId id(t);
    const Tensor& tensor = step.tensors[t];
    const bool entry = step.storage(tensor.storage).persistent && step.storage(tensor.storage).entry == id;
    if (tensor.tensor_class != TensorClass::input && !entry) continue;
    std::vector<double> values(static_cast<std::size_t>(tensor.shape.elements()));
    for (double& value : values) {
      value = normal(generator);
      if (tensor.type == DataType::i32) value = static_cast<double>(generator() % 2);
      if (tensor.role == Role::running_variance || tensor.role == Role::second_moment) value = std::abs(value) + 0.1;
      if (tensor.role == Role::weight && tensor.tensor_class == TensorClass::parameter) value *= 0.5;
    }
    if (tensor.type == DataType::i32) fill_float_labels(step, generator, values);
    interpreter.set(id, as_floats(values));
  }
}

// Distance of two vectors, relative to the length of the second.
inline double relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    length += expected[i] * expected[i];
  }
  if (difference == 0) return 0;
  return std::sqrt(difference) / std::max(std::sqrt(length), 1e-12);
}

// The elements of its tensor that an operand shows: the first, and how many. REQUIRES: a view of what lies in one row.
inline std::pair<std::size_t, std::size_t> elements_shown(const Step& step, const Operand& operand) {
  const std::int64_t first = step.offset_of(operand).count() / element_bytes(step.tensor(operand.tensor).type);
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(step.shape_of(operand).elements())};
}
inline std::vector<double> shown_of(const Step& step, const Operand& operand, const std::vector<double>& all) {
  const auto [first, count] = elements_shown(step, operand);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

class TaskRunner {
 public:
  // `shift` moves all addresses by a multiple of 256 bytes.
  TaskRunner(Backend& backend, const Step& step, std::int64_t shift = 0)
      : backend_(backend), step_(step), shift_(shift) {}
  ~TaskRunner() {
    for (const auto& [size, memory] : free_) backend_.release(memory, size);
  }
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // Runs one task on the values that `before` has of its operands, and returns what it
  // wrote, in logical order, by operand: of a view, what it shows. The targets of `pairs` take their sources'
  // addresses.
  std::map<std::size_t, std::vector<double>> run(TaskId id, const ReferenceInterpreter& before, const StepState& state,
                                                 const std::vector<InPlacePair>& pairs = {},
                                                 std::size_t algorithm = 0) {
    const auto operands = step_.operands_of(id);
    std::vector<std::byte*> addresses;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool shared = std::any_of(pairs.begin(), pairs.end(), [&](const InPlacePair& pair) {
        return static_cast<std::size_t>(pair.target) == i;
      });
      addresses.push_back(shared ? nullptr : allocate(step_.storage(step_.tensor(operands[i].tensor).storage).bytes));
    }
    for (const InPlacePair& pair : pairs)
      addresses[static_cast<std::size_t>(pair.target)] = addresses[static_cast<std::size_t>(pair.source)];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].access == Access::write) continue;
      const std::vector<double> values = before.get_logical(operands[i].tensor);
      const std::vector<float> floats(values.begin(), values.end());
      backend_.write_tensor(step_, operands[i].tensor, floats, addresses[i]);
    }
    std::byte* workspace = allocate(step_.algorithms_of(id)[algorithm].workspace);
    const Kernel kernel = backend_.prepare(step_, id, algorithm);
    std::vector<std::byte*> seen = addresses;  // through views
    for (std::size_t i = 0; i < operands.size(); ++i) seen[i] += step_.offset_of(operands[i]).size();
    kernel({seen.data(), workspace, &state});

    std::map<std::size_t, std::vector<double>> results;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].access == Access::read) continue;
      const std::vector<double> all = read(operands[i].tensor, addresses[i]);
      results[i] = shown_of(step_, operands[i], all);
      if (operands[i].access == Access::write)
        check_beside(operands[i], all, std::vector<double>(all.size(), std::nan("")));
      else
        check_beside(operands[i], all, as_floats(before.get_logical(operands[i].tensor)));
    }
    check_guards();
    release();
    return results;
  }

 private:
  static constexpr std::int64_t kGuard = 256;

  std::vector<double> read(TensorId tensor, const std::byte* address) {
    std::vector<float> floats(static_cast<std::size_t>(step_.tensor(tensor).shape.elements()));
    backend_.read_tensor(step_, tensor, address, floats);
    return {floats.begin(), floats.end()};
  }

  // What a view does not show is as it was.
  void check_beside(const Operand& operand, const std::vector<double>& all, const std::vector<double>& before) const {
    const auto [first, count] = elements_shown(step_, operand);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool kept = all[i] == before[i] || (std::isnan(all[i]) && std::isnan(before[i]));
      ASSERT_TRUE(kept || (i >= first && i < first + count)) << "written beside its part, element " << i;
    }
  }

  // A device takes its time to allocate and release: there, memory is used again.
  std::byte* take(Bytes size) {
    const auto found = free_.find(size);
    if (found == free_.end()) return backend_.allocate(size);
    std::byte* memory = found->second;
    free_.erase(found);
    return memory;
  }

  // Memory full of NaN, with a guard behind it.
  std::byte* allocate(Bytes bytes) {
    const Bytes size = bytes.aligned() + Bytes(shift_ * 256 + kGuard);
    Block block{take(size), size, shift_ * 256 + bytes.count()};
    const std::vector<std::byte> fill(size.size(), std::byte{0xFF});
    backend_.copy(block.memory, fill.data(), size);
    blocks_.push_back(block);
    return block.memory + shift_ * 256;
  }

  void check_guards() const {
    for (const Block& block : blocks_) {
      std::array<std::byte, kGuard> guard;
      backend_.copy(guard.data(), block.memory + block.end, Bytes(kGuard));
      for (std::size_t i = 0; i < guard.size(); ++i)
        ASSERT_EQ(guard[i], std::byte{0xFF}) << "written " << i << " bytes behind the end";
    }
  }

  void release() {
    for (const Block& block : blocks_) {
      if (backend_.host_addressable())
        backend_.release(block.memory, block.size);
      else
        free_.emplace(block.size, block.memory);
    }
    blocks_.clear();
  }

  struct Block {
    std::byte* memory;
    Bytes size;
    std::int64_t end;
  };
  Backend& backend_;
  const Step& step_;
  std::int64_t shift_;
  std::vector<Block> blocks_;
  std::multimap<Bytes, std::byte*> free_;
};

// Rounds what a task wrote, so that the next ones start from values that memory can hold.
inline void round_written(const Step& step, TaskId id, ReferenceInterpreter& interpreter) {
  for (const Operand& operand : step.operands_of(id))
    if (operand.access != Access::read)
      interpreter.set(operand.tensor, as_stored(step.tensor(operand.tensor).type, interpreter.get(operand.tensor)));
}

}  // namespace tide::test
