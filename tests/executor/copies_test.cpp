// Plans with copies, written by hand: a liveness plan in which an activation goes to host
// memory after forward and comes back for backward, and one in which a momentum lives in
// host memory between steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "executor/job.h"
#include "network/builder.h"
#include "plan/checker.h"

namespace tide {
namespace {

constexpr std::int64_t kSamples = 3;

NetworkPtr network_with_copies() {
  Builder net("small");
  Value x = net.input({1, 2, 6, 6});
  x = net.tanh(net.convolution(x, {.channels = 5, .window = Window::square(3, 1, 1)}, "conv1"), "tanh1");
  x = net.dropout(net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "conv2"));
  x = net.tanh(net.batch_norm(x), "tanh2");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 3}, "fc"));
  return test::shared_network(std::move(net).build());
}

Plan small_plan(const Backend& backend) {
  return test::plan_for(network_with_copies(), backend, "liveness", test::training_step(kSamples));
}

std::int32_t op_named(const Plan& plan, std::string_view name) {
  const Phase& phase = plan.phases.front();
  for (std::size_t i = 0; i < phase.ops.size(); ++i)
    if (phase.ops[i].is_run() && task_name(*phase.step, phase.ops[i].run().task) == name)
      return static_cast<std::int32_t>(i);
  throw Error("there is no op '{}'", name);
}

TensorId tensor_named(const Step& step, std::string_view name) {
  for (std::size_t t = 0; t < step.tensors.size(); ++t)
    if (tensor_name(step, TensorId(t)) == name) return TensorId(t);
  throw Error("there is no tensor '{}'", name);
}

// Inserts an op at `position`; everything from there on moves up by one.
void insert_op(Phase& phase, std::int32_t position, Op op) {
  const auto moved = [position](std::int32_t index) { return index >= position ? index + 1 : index; };
  for (Op& other : phase.ops)
    for (std::int32_t& wait : other.waits) wait = moved(wait);
  for (Residency& r : phase.residencies) {
    r.first = moved(r.first);
    r.last = moved(r.last);
  }
  phase.ops.insert(phase.ops.begin() + position, std::move(op));
}

Op waiting_copy(StorageId storage, Tier from, Tier to, std::vector<std::int32_t> waits) {
  Op op = copy_op({storage, from, to});
  op.waits = std::move(waits);
  return op;
}

// Where the parts of the offloaded plan are, for damage.
struct Offloaded {
  Plan plan;
  StorageId storage;
  std::int32_t out = 0, in = 0, user = 0;       // ops
  std::size_t before = 0, host = 0, after = 0;  // residencies
  [[nodiscard]] Phase& phase() { return plan.phases.front(); }
};

//   conv1  tanh1  conv2 ... fc ... conv2 backward-weights
//   |------ tanh1.y ----|                                    device
//                  [out]|---------------|                    host
//                                   [in]|--- tanh1.y ---|    device, at another address
Offloaded offload(Plan plan) {
  Offloaded result;
  result.plan = std::move(plan);
  Phase& phase = result.phase();
  const StorageId storage = result.storage = phase.step->tensor(tensor_named(*phase.step, "tanh1.y")).storage;
  const Bytes top = summarize(result.plan).peak[Tier::device];

  const std::int32_t last_forward = op_named(result.plan, "conv2 forward");
  result.out = last_forward + 1;
  insert_op(phase, result.out, waiting_copy(storage, Tier::device, Tier::host, {last_forward}));
  const std::int32_t cover = op_named(result.plan, "fc backward-data");
  result.in = cover + 1;
  insert_op(phase, result.in, waiting_copy(storage, Tier::host, Tier::device, {result.out, cover}));
  result.user = op_named(result.plan, "conv2 backward-weights");
  phase.ops[static_cast<std::size_t>(result.user)].waits.push_back(result.in);

  const auto stay = std::find_if(phase.residencies.begin(), phase.residencies.end(),
                                 [storage](const Residency& r) { return r.storage == storage; });
  result.before = static_cast<std::size_t>(stay - phase.residencies.begin());
  const std::int32_t end = std::exchange(stay->last, result.out);
  result.host = phase.residencies.size();
  phase.residencies.push_back({storage, Tier::host, result.out, result.in, Bytes()});
  result.after = phase.residencies.size();
  phase.residencies.push_back({storage, Tier::device, result.in, end, top});
  return result;
}

struct Trained {
  double loss = 0;
  std::uint64_t hash = 0;
};

Trained train(test::Job& job) {
  job.set_state(test::formula_values(*job.step().network));
  const double loss = job.run_steps(3, 0.1);
  return {loss, job.state_hash()};
}

TEST(Copies, AnOffloadedActivationChangesNoBit) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  test::Job plain(small_plan(*backend), *backend);
  const Trained expected = train(plain);

  Offloaded offloaded = offload(small_plan(*backend));
  ASSERT_EQ(check(offloaded.plan).size(), 0U) << check(offloaded.plan).front().text;
  const Bytes bytes = offloaded.phase().step->storage(offloaded.storage).bytes;
  for (const bool guard : {true, false}) {
    test::Job job(offloaded.plan, *backend, {.guard = guard, .record = true});
    const Trained actual = train(job);
    EXPECT_EQ(actual.loss, expected.loss);
    EXPECT_EQ(actual.hash, expected.hash);
    EXPECT_EQ(job.executor().copied_out(), bytes);
    EXPECT_EQ(job.executor().copied_in(), bytes);
    EXPECT_EQ(job.executor().high_water(), summarize(job.plan()).peak[Tier::device]);
    EXPECT_EQ(job.executor().timeline().spans.size(), job.plan().phases.front().ops.size());
  }
}

// The copies are needed: without them, the values are not there.
TEST(Copies, AnExecutorWithoutThemReadsPoison) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  Offloaded offloaded = offload(small_plan(*backend));
  Op& in = offloaded.phase().ops[static_cast<std::size_t>(offloaded.in)];
  in = waiting_copy(offloaded.storage, Tier::device, Tier::host, {offloaded.out});
  EXPECT_NE(check(offloaded.plan).size(), 0U);
  test::Job job(offloaded.plan, *backend);
  job.set_state(test::formula_values(*job.step().network));
  job.run(0, 0.1);
  const std::vector<float> weights = job.read(tensor_named(job.step(), "conv2.weight"));
  EXPECT_TRUE(std::isnan(weights.front()));
}

TEST(Copies, AMomentumMayLiveInHostMemory) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  test::Job plain(small_plan(*backend), *backend);
  const Trained expected = train(plain);

  Plan plan = small_plan(*backend);
  Phase& phase = plan.phases.front();
  const StorageId storage = phase.step->tensor(tensor_named(*phase.step, "conv2.first_moment")).storage;
  const std::int32_t in = op_named(plan, "conv2 update d_weight");
  insert_op(phase, in, waiting_copy(storage, Tier::host, Tier::device, {}));
  phase.ops[static_cast<std::size_t>(in + 1)].waits.push_back(in);
  insert_op(phase, in + 2, waiting_copy(storage, Tier::device, Tier::host, {in + 1}));
  for (Residency& r : phase.residencies)
    if (r.storage == storage) {
      r.first = in;
      r.last = in + 2;
    }
  phase.residencies.push_back({storage, Tier::host, kEntry, static_cast<std::int32_t>(phase.ops.size()), Bytes(512)});
  ASSERT_EQ(check(plan).size(), 0U) << check(plan).front().text;

  test::Job job(std::move(plan), *backend);
  const Trained actual = train(job);
  EXPECT_EQ(actual.loss, expected.loss);
  EXPECT_EQ(actual.hash, expected.hash);
  const Bytes bytes = job.step().storage(storage).bytes;
  EXPECT_EQ(job.executor().copied_out(), bytes);
  EXPECT_EQ(job.executor().copied_in(), bytes);
}

struct Damage {
  const char* name;
  FindingKind kind;
  std::function<void(Offloaded&)> apply;
  friend std::ostream& operator<<(std::ostream& out, const Damage& c) { return out << c.name; }
};

Op& op_at(Offloaded& o, std::int32_t index) { return o.phase().ops[static_cast<std::size_t>(index)]; }
void forget_wait(Op& op, std::int32_t wait) { std::erase(op.waits, wait); }

std::vector<Damage> damages() {
  using Kind = FindingKind;
  return {
      {"OutDoesNotWaitForItsProducer", Kind::race, [](Offloaded& o) { op_at(o, o.out).waits.clear(); }},
      {"InDoesNotWaitForOut", Kind::race, [](Offloaded& o) { forget_wait(op_at(o, o.in), o.out); }},
      {"UserDoesNotWaitForIn", Kind::race, [](Offloaded& o) { forget_wait(op_at(o, o.user), o.in); }},
      {"WaitsForALaterOp", Kind::malformed, [](Offloaded& o) { op_at(o, o.out).waits.push_back(o.in); }},
      {"NoHostStay", Kind::not_resident,
       [](Offloaded& o) {
         o.phase().residencies.erase(o.phase().residencies.begin() + static_cast<std::ptrdiff_t>(o.host));
       }},
      {"HostStayEndsEarly", Kind::not_resident, [](Offloaded& o) { --o.phase().residencies[o.host].last; }},
      {"NoSecondStay", Kind::not_resident, [](Offloaded& o) { o.phase().residencies.pop_back(); }},
      {"SecondStayEndsBeforeItsUser", Kind::not_resident,
       [](Offloaded& o) { o.phase().residencies[o.after].last = o.in; }},
      {"FirstStayEndsBeforeTheCopy", Kind::not_resident, [](Offloaded& o) { --o.phase().residencies[o.before].last; }},
      {"CopiedBeforeItIsMade", Kind::wrong_value,
       [](Offloaded& o) {
         // The stay begins with a copy of bytes that nobody wrote.
         Phase& phase = o.phase();
         const std::int32_t made = phase.residencies[o.before].first;
         insert_op(phase, made, waiting_copy(o.storage, Tier::device, Tier::host, {}));
         phase.residencies[o.before].first = made;
         phase.residencies.push_back({o.storage, Tier::host, made, made, Bytes(1 << 20)});
       }},
      {"SecondStayOnTopOfTheParameters", Kind::overlap,
       [](Offloaded& o) { o.phase().residencies[o.after].address = Bytes(); }},
      {"AddressIsNotAligned", Kind::malformed, [](Offloaded& o) { o.phase().residencies[o.host].address = Bytes(64); }},
      {"CopyOnTheComputeLane", Kind::malformed, [](Offloaded& o) { op_at(o, o.out).lane = Lane::compute; }},
      {"CopyStraightToDisk", Kind::malformed, [](Offloaded& o) { op_at(o, o.out).copy().to = Tier::disk; }},
      {"CopyStraightToAnotherRank", Kind::malformed, [](Offloaded& o) { op_at(o, o.out).copy().to = Tier::lent; }},
      {"OverTheHostBudget", Kind::over_budget,
       [](Offloaded& o) {
         o.plan.memory[Tier::host] = aligned_bytes(o.phase(), o.phase().residencies[o.host]) - Bytes(1);
       }},
      {"OverTheDeviceBudget", Kind::over_budget,
       [](Offloaded& o) { o.plan.memory[Tier::device] = summarize(o.plan).peak[Tier::device] - Bytes(1); }},
  };
}

class DamagedCopies : public testing::TestWithParam<Damage> {};

TEST_P(DamagedCopies, AreRejected) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  Offloaded offloaded = offload(small_plan(*backend));
  ASSERT_EQ(check(offloaded.plan).size(), 0U);
  GetParam().apply(offloaded);
  const std::vector<Finding> findings = check(offloaded.plan);
  ASSERT_FALSE(findings.empty());
  const auto found = [&](const Finding& finding) { return finding.kind == GetParam().kind; };
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), found))
      << "first: " << finding_name(findings.front().kind) << ": " << findings.front().text;
}

INSTANTIATE_TEST_SUITE_P(All, DamagedCopies, testing::ValuesIn(damages()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace tide
