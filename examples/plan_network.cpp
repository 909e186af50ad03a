// Plans a training step within a budget, and says what the plan does. Nothing is trained.
//
//   plan_network                     resnet50 in 4GiB
//   plan_network vgg16 2GiB          another model, another budget
//   plan_network vgg16 2GiB k40c     for a device that need not be here (see `tide devices`)
#include <tidepool/tidepool.h>

#include <cstdio>

namespace {

int run(const std::string& model, const std::string& memory, const std::string& device) {
  const auto network = std::make_shared<const tide::Network>(tide::make_model(model));
  const tide::SessionOptions options{.planner = tide::within(tide::parse_size(memory))};
  const tide::Target target = device.empty() ? tide::Target(tide::make_backend("cpu"), tide::CostRequest{})
                                             : tide::Target(tide::find_device(device));

  const tide::PlanResult result = tide::plan_network(network, {.batch = 32}, options, &target);
  if (!result.plan) {
    // Not an error: the answer is how much memory it would take.
    fmt::print("{} does not fit into {}: {}\n", model, memory, tide::shortage_text(result));
    return 2;
  }

  const tide::PlanSummary summary = tide::summarize(*result.plan);
  const double step = tide::simulate(*result.plan, target.cost()).seconds;
  fmt::print("{}, batch {}, in {}\n", network->name, tide::batch_of(*result.plan), memory);
  fmt::print("peak          {}\n", tide::format_size(summary.peak[tide::Tier::device]));
  fmt::print("step          {:.3g} s, {}\n", step, target.source());
  fmt::print("moved out     {}\n", tide::format_size(summary.offloaded_bytes));
  fmt::print("moved back    {}\n", tide::format_size(summary.prefetched_bytes));
  fmt::print("run again     {} of {} tasks\n", summary.recomputed_tasks, summary.tasks);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "resnet50", argc > 2 ? argv[2] : "4GiB", argc > 3 ? argv[3] : "");
  } catch (const tide::Error& error) {
    fmt::print(stderr, "plan_network: {}\n", error.what());
    return 1;
  }
}
