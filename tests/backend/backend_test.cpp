// The contract of backend.h, on every backend that this build has.
#include "backend/network_cases.h"
#include "backend/task_runner.h"

namespace tide::test {
namespace {

Step small_step(std::int64_t batch = 2) {
  Builder net("small");
  Value x = net.convolution(net.input({1, 3, 9, 8}), {.channels = 37, .window = Window::square(3, 1, 1)});
  x = net.transposed_convolution(net.max_pool(net.batch_norm(x), {.window = Window::square(2, 2)}),
                                 {.channels = 5, .window = Window::square(2, 2)});
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 11}));
  return build_step(std::make_shared<const Network>(std::move(net).build()), step_options(batch));
}

TEST(MakeBackendTest, KnowsItsNames) {
  EXPECT_EQ(make_backend("null")->name(), "null");
  EXPECT_EQ(make_backend("reference")->name(), "reference");
  EXPECT_THROW(static_cast<void>(make_backend("gpu")), Error);
  EXPECT_THROW(static_cast<void>(make_backend("cpu", -1)), Error);
  try {
    EXPECT_EQ(make_backend("cpu", 3)->description().substr(0, 11), "cpu oneDNN ");
    EXPECT_NE(make_backend("cpu", 3)->description().find("threads=3"), std::string::npos);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("TIDE_ONEDNN=ON"), std::string::npos);
  }
  try {
    EXPECT_EQ(make_backend("cuda")->description().substr(0, 5), "cuda ");
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.find("TIDE_CUDA=ON") != std::string::npos || text.find("no CUDA device") != std::string::npos)
        << text;
  }
}

class BackendTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    backend_ = GetParam() == TIDE_TESTED_BACKEND ? tested_backend() : make_backend(GetParam());
    if (backend_ == nullptr) GTEST_SKIP() << no_backend();
  }
  std::shared_ptr<Backend> backend_;
};

TEST_P(BackendTest, AnnotatesEveryTask) {
  Step step = small_step();
  backend_->annotate(step);
  EXPECT_EQ(step.backend, backend_->description());
  for (std::size_t t = 0; t < step.tasks.size(); ++t) EXPECT_FALSE(step.algorithms_of(TaskId(t)).empty());
  for (const Tensor& tensor : step.tensors)
    EXPECT_GE(step.storage(tensor.storage).bytes, bytes_of(tensor.shape, tensor.type));
}

TEST_P(BackendTest, AnnotatesTwiceTheSame) {
  Step once = small_step(), twice = small_step();
  backend_->annotate(once);
  backend_->annotate(twice);
  backend_->annotate(twice);
  EXPECT_EQ(once.algorithm_sets.size(), twice.algorithm_sets.size());
  for (std::size_t s = 0; s < once.storages.size(); ++s) EXPECT_EQ(once.storages[s].bytes, twice.storages[s].bytes);
}

// Steps of other sizes, and evaluation, run on the same weights.
TEST_P(BackendTest, LaysOutWeightsWhateverTheBatch) {
  const auto weight_bytes = [&](const Step& step) {
    std::vector<Bytes> bytes;
    for (const Storage& storage : step.storages)
      if (storage.tensor_class == TensorClass::parameter) bytes.push_back(storage.bytes);
    return bytes;
  };
  Step first = small_step(1);
  backend_->annotate(first);
  for (const std::int64_t batch : {2, 7, 64}) {
    Step other = small_step(batch);
    backend_->annotate(other);
    EXPECT_EQ(weight_bytes(first), weight_bytes(other));
  }
}

TEST_P(BackendTest, ReadsWhatItWrote) {
  Step step = small_step();
  backend_->annotate(step);
  std::mt19937 generator(5);
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const Tensor& tensor = step.tensors[t];
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements())), read(values.size());
    for (float& value : values) value = static_cast<float>(generator() % 200);
    const Bytes bytes = step.storage(tensor.storage).bytes;
    std::byte* memory = backend_->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
    backend_->write_tensor(step, TensorId(t), values, memory);
    backend_->read_tensor(step, TensorId(t), memory, read);
    EXPECT_EQ(read, values) << tensor_name(step, TensorId(t));
    backend_->release(memory, bytes);
  }
}

TEST_P(BackendTest, RefusesTensorsOfTheWrongSize) {
  if (GetParam() == "null") GTEST_SKIP() << "it copies whatever it is given";
  Step step = small_step();
  backend_->annotate(step);
  std::byte* memory = backend_->allocate(Bytes(1 << 20));
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    if (GetParam() == "reference" && step.tensors[t].parameter.valid()) continue;
    const std::vector<float> values(static_cast<std::size_t>(step.tensors[t].shape.elements()) + 1);
    EXPECT_THROW(backend_->write_tensor(step, TensorId(t), values, memory), Error);
  }
  backend_->release(memory, Bytes(1 << 20));
}

TEST_P(BackendTest, SaysHowMuchItCannotAllocate) {
  try {
    static_cast<void>(backend_->allocate(Bytes(std::int64_t{1} << 60)));
    FAIL() << "an exbibyte was there";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("PiB"), std::string::npos) << error.what();
  }
}

TEST_P(BackendTest, PreparesEveryTask) {
  Step step = small_step();
  backend_->annotate(step);
  for (std::size_t t = 0; t < step.tasks.size(); ++t)
    EXPECT_TRUE(backend_->prepare(step, TaskId(t), 0)) << task_name(step, TaskId(t));
}

INSTANTIATE_TEST_SUITE_P(All, BackendTest, testing::Values("null", "reference", TIDE_TESTED_BACKEND),
                         [](const auto& entry) { return entry.param; });

// A whole step on storages as a plan would give them, against the interpreter: the order of
// tasks, the sharing of storages and the updates in place.
TEST(WholeStepTest, FollowsTheInterpreter) {
  for (const std::string name : {"reference", TIDE_TESTED_BACKEND}) {
    const std::shared_ptr<Backend> backend = name == TIDE_TESTED_BACKEND ? tested_backend() : make_backend(name);
    if (backend == nullptr) continue;
    Step built = small_step(3);
    backend->annotate(built);
    const auto step = std::make_shared<const Step>(std::move(built));
    ReferenceInterpreter reference(step);
    fill_inputs(*step, reference);
    std::vector<std::byte*> storages;
    for (const Storage& storage : step->storages) storages.push_back(backend->allocate(storage.bytes));
    for (std::size_t t = 0; t < step->tensors.size(); ++t) {
      const Storage& storage = step->storage(step->tensors[t].storage);
      if (step->tensors[t].tensor_class != TensorClass::input && storage.entry != TensorId(t)) continue;
      const std::vector<double> values = reference.get_logical(TensorId(t));
      const std::vector<float> floats(values.begin(), values.end());
      backend->write_tensor(*step, TensorId(t), floats, storages[step->tensors[t].storage.index()]);
    }
    StepState state = test_state(*step);
    for (int round = 0; round < 3; ++round, ++state.step) {
      reference.run(state);
      for (std::size_t t = 0; t < step->ordered_tasks; ++t) {
        std::vector<std::byte*> addresses;
        for (const Operand& operand : step->operands_of(TaskId(t)))
          addresses.push_back(storages[step->tensor(operand.tensor).storage.index()]);
        const Bytes workspace_bytes = step->algorithms_of(TaskId(t))[0].workspace;
        std::byte* workspace = backend->allocate(workspace_bytes);
        backend->prepare(*step, TaskId(t), 0)({addresses.data(), workspace, &state});
        backend->release(workspace, workspace_bytes);
      }
      for (std::size_t s = 0; s < step->storages.size(); ++s) {
        const Storage& storage = step->storages[s];
        if (!storage.persistent) continue;
        std::vector<float> floats(static_cast<std::size_t>(step->tensor(storage.exit).shape.elements()));
        backend->read_tensor(*step, storage.exit, storages[s], floats);
        EXPECT_LE(relative_error({floats.begin(), floats.end()}, reference.get_logical(storage.exit)), 1e-4)
            << name << " " << tensor_name(*step, storage.exit) << " round " << round;
      }
      reference.carry_over();
    }
    for (std::size_t s = 0; s < storages.size(); ++s) backend->release(storages[s], step->storages[s].bytes);
  }
}

}  // namespace
}  // namespace tide::test
