// A small step made by hand in which one tensor is written in two parts and read whole, in another
// arrangement, and through one of its parts:
//
//   x (upper half) -> left  -> h (upper half)      h as 2x2x4096 -> whole -> y
//   x (lower half) -> right -> h (lower half)      h (lower half) -> part -> z
//
// and backward from there to a parameter. It has no network: nothing but its tables is asked.
#pragma once

#include "step/step.h"

namespace tide::testing_support {

// REQUIRES: the task has no pairs yet.
inline void allow_in_place(Step& step, std::size_t task, InPlacePair pair) {
  step.tasks[task].first_in_place = static_cast<std::uint32_t>(step.in_place.size());
  step.tasks[task].in_place_count = 1;
  step.in_place.push_back(pair);
}

class PartsStep {
 public:
  static Step make() { return PartsStep().step_; }

  // Tensors and views by what they are.
  static constexpr std::size_t kX = 0, kH = 1, kY = 2, kZ = 3, kEnd = 4, kPart = 5, kWhole = 6, kOld = 7, kNew = 8;
  static constexpr std::size_t kUpper = 0, kLower = 1, kArranged = 2;
  static constexpr std::int64_t kColumns = 4096;

 private:
  PartsStep() {
    step_.model = "parts";
    step_.options.batch = 4;
    step_.layer_names = {"input", "left", "right", "whole", "part", "end"};
    step_.layer_kinds = {LayerKind::input,   LayerKind::relu, LayerKind::relu,
                         LayerKind::sigmoid, LayerKind::tanh, LayerKind::add};
    step_.layer_steps = 5;
    step_.algorithm_sets = {{{"default", Bytes()}}};
    const Shape all{4, kColumns}, half{2, kColumns};
    step_.views = {{half, MemoryOrder::row_major(2), Bytes(0)},
                   {half, MemoryOrder::row_major(2), bytes_of(half, DataType::f32)},
                   {{2, 2, kColumns}, MemoryOrder::row_major(3), Bytes(0)}};

    tensor(TensorClass::input, all, 0, Role::x);
    step_.storages.back().entry = TensorId(kX);
    tensor(TensorClass::activation, all, 1, Role::y);
    tensor(TensorClass::activation, all, 3, Role::y);
    tensor(TensorClass::activation, half, 4, Role::y);
    tensor(TensorClass::activation_gradient, all, 5, Role::dx);
    tensor(TensorClass::activation_gradient, half, 4, Role::dx);
    tensor(TensorClass::activation_gradient, all, 3, Role::dx);
    tensor(TensorClass::parameter, {16}, 3, Role::weight);
    step_.storages.back().persistent = true;
    step_.tensors.push_back(step_.tensors.back());
    step_.storages.back().entry = TensorId(kOld);
    step_.storages.back().exit = TensorId(kNew);

    task(TaskKind::forward, 1, 1, {read(Role::x, kX, kUpper), write(Role::y, kH, kUpper)});
    task(TaskKind::forward, 2, 2, {read(Role::x, kX, kLower), add(Role::y, kH, kLower)});
    task(TaskKind::forward, 3, 3, {read(Role::x, kH, kArranged), write(Role::y, kY)});
    task(TaskKind::forward, 4, 4, {read(Role::x, kH, kLower), write(Role::y, kZ)});
    task(TaskKind::backward, 5, 6, {read(Role::x, kY), read(Role::x, kZ), write(Role::dx, kEnd)});
    task(TaskKind::backward, 4, 7, {read(Role::x, kH, kLower), read(Role::dy, kEnd), write(Role::dx, kPart)});
    task(TaskKind::backward, 3, 8, {read(Role::x, kH), read(Role::dy, kEnd), write(Role::dx, kWhole)});
    task(TaskKind::update, 3, 0,
         {read(Role::gradient, kPart), read(Role::gradient, kWhole), read(Role::weight, kOld),
          write(Role::weight, kNew)});
    allow_in_place(step_, step_.tasks.size() - 1, {2, 3});
    step_.ordered_tasks = static_cast<std::uint32_t>(step_.tasks.size());
    // What is made whole can be made again.
    task(TaskKind::replay, 3, 3, {read(Role::x, kH, kArranged), write(Role::y, kY)});
    task(TaskKind::replay, 4, 4, {read(Role::x, kH, kLower), write(Role::y, kZ)});
    step_.replay_of.resize(step_.tasks.size());
    step_.replay_of[2] = TaskId(8);
    step_.replay_of[3] = TaskId(9);
  }

  static ViewId view(std::size_t index) { return index <= kArranged ? ViewId(index) : ViewId(); }
  static constexpr std::size_t kNoView = kArranged + 1;
  static Operand read(Role role, std::size_t tensor, std::size_t seen = kNoView) {
    return {role, Access::read, 0, TensorId(tensor), view(seen)};
  }
  static Operand write(Role role, std::size_t tensor, std::size_t seen = kNoView) {
    return {role, Access::write, 0, TensorId(tensor), view(seen)};
  }
  static Operand add(Role role, std::size_t tensor, std::size_t seen) {
    return {role, Access::accumulate, 0, TensorId(tensor), view(seen)};
  }

  void tensor(TensorClass tensor_class, const Shape& shape, std::size_t layer, Role role) {
    Tensor made;
    made.tensor_class = tensor_class;
    made.shape = shape;
    made.order = MemoryOrder::row_major(shape.rank());
    made.storage = StorageId(step_.storages.size());
    made.layer = LayerId(layer);
    made.role = role;
    step_.tensors.push_back(made);
    Storage storage;
    storage.bytes = bytes_of(shape, DataType::f32);
    storage.tensor_class = tensor_class;
    step_.storages.push_back(storage);
  }

  void task(TaskKind kind, std::size_t layer, std::int32_t number, const std::vector<Operand>& operands) {
    Task made;
    made.kind = kind;
    made.layer = LayerId(layer);
    made.step = number;
    made.first_operand = static_cast<std::uint32_t>(step_.operands.size());
    made.operand_count = static_cast<std::uint32_t>(operands.size());
    step_.operands.insert(step_.operands.end(), operands.begin(), operands.end());
    step_.tasks.push_back(std::move(made));
  }

  Step step_;
};

}  // namespace tide::testing_support
