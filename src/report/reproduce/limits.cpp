// Tables 4 and 5 and Figure 13: how deep and how wide 12 GB go.
#include <array>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "planner/policy.h"
#include "report/fit.h"
#include "report/reproduce/superneurons.h"
#include "report/reproduce/workbench.h"
#include "report/resnet_depth.h"

namespace tide::reproduce::superneurons {
namespace {

Setting in_device(std::string_view model, std::string_view policy, Rules rules) {
  Setting setting{.model = model, .policy = policy, .rules = rules};
  setting.options.memory[Tier::device] = Bytes(kDeviceMemory);
  return setting;
}

// Largest batches by framework: Caffe, MXNet, Torch, TensorFlow, SuperNeurons; 0: none given.
struct Batches {
  std::string_view name;
  std::array<std::int64_t, 5> batches;
};
constexpr std::array<std::string_view, 5> kFrameworks{"Caffe", "MXNet", "Torch", "TensorFlow", "SuperNeurons"};
constexpr std::array<Batches, 6> kTable5{{{"AlexNet", {768, 768, 1024, 1408, 1792}},
                                          {"VGG16", {48, 64, 48, 80, 224}},
                                          {"InceptionV4", {16, 0, 0, 64, 240}},
                                          {"ResNet50", {24, 80, 32, 128, 384}},
                                          {"ResNet101", {16, 48, 16, 80, 256}},
                                          {"ResNet152", {16, 32, 16, 48, 176}}}};

constexpr std::string_view kDeepModel = "resnet:6,32,?,6";

FitResult deepest(std::string_view policy, Rules rules, std::int64_t batch) {
  const DeviceModel cost(find_device("k40c").rates());
  Setting setting = in_device("", policy, rules);
  setting.batch = batch;
  const auto build = [&](std::int64_t n) {
    Workbench once;  // networks of a search are not asked for again
    const std::string name = with_unknown(kDeepModel, n);
    setting.model = name;
    return once.step(setting);
  };
  FitProblem problem = fit_of_steps(build, find_policy(policy), cost, setting.options);
  problem.most = kMostResidualUnits;
  return largest_fit(problem);
}

std::int64_t depth_of(const FitResult& fit) {
  return fit.size > 0 ? residual_depth(with_unknown(kDeepModel, fit.size)) : 0;
}

Series depths_by_policy(Report& report) {
  Series series{"table4", {"policy", "rules", "n3", "depth", "host_gib", "plans", "search_seconds"}, {}, true};
  for (const auto& [policy, rules] :
       {std::pair("superneurons", Rules::superneurons), std::pair("superneurons", Rules::minimal),
        std::pair("liveness", Rules::superneurons), std::pair("liveness", Rules::minimal)}) {
    const FitResult fit = deepest(policy, rules, 16);
    const auto depth = static_cast<double>(depth_of(fit));
    if (std::string_view(policy) == "superneurons")
      report.modelled(fmt::format("SuperNeurons, rules {}", rules_name(rules)), "depth", 1920, depth, 0, 1);
    else
      report.only_ours(fmt::format("liveness alone, rules {}", rules_name(rules)), "depth", depth, 0, 2);
    series.rows.push_back(
        {policy, std::string(rules_name(rules)), fmt::format("{}", fit.size), fmt::format("{}", depth_of(fit)),
         fit.plan.plan ? fmt::format("{:.1f}", gibibytes(summarize(*fit.plan.plan).peak[Tier::host])) : "-",
         fmt::format("{}", fit.asked), fmt::format("{:.2f}", fit.seconds)});
  }
  return series;
}

}  // namespace

Report table4(Workbench& bench) {
  Report report;
  report.setting =
      "resnet:6,32,n,6 (v1.5, 224x224) at batch 16, momentum, 12 GiB, host memory unlimited; depth 3 (44 + n) + 2";
  report.series.push_back(depths_by_policy(report));
  Setting paper = in_device("resnet:6,32,596,6", "superneurons", Rules::superneurons);
  paper.batch = 16;
  report.only_ours("floor at the paper's depth (n = 596: 1922)", "GiB",
                   gibibytes(bench.plan(paper).result.floor[Tier::device]), 2, 1);
  report.only_ours("parameters at that depth, once", "GiB",
                   gibibytes(bytes_of(Shape{bench.network(paper.model)->parameter_count()}, DataType::f32)), 2, 1);
  report.remarked("SuperNeurons at batch 1, rules superneurons", "depth", "up to 2500",
                  static_cast<double>(depth_of(deepest("superneurons", Rules::superneurons, 1))), 0, 3);
  report.notes = {
      "By the formula no n gives 1920 (n would be 595.3); 596 gives 1922. What bounds the depth here is parameters, "
      "their "
      "momentum and the largest task, in all of the 12 GiB. The paper does not say what stopped its runtime: the CUDA "
      "context and "
      "fragmentation come on top, and if it kept gradients and one more buffer of the parameters' size (a guess), "
      "these four "
      "copies alone would take nearly all of the memory at its depth.",
      "In the paper: Caffe 148, Torch 152, MXNet 480, TensorFlow 592.",
      "The abstract's ResNet2500 with 10^4 basic layers; the evaluation speaks of 2500 residual units, which would be "
      "more layers."};
  return report;
}

Report table5(Workbench& bench) {
  Report report;
  report.setting =
      "12 GiB, momentum, host memory unlimited, algorithms of a k40c; ours by the paper's rules and by our kernels'";
  Series series{
      "table5",
      {"network", "paper", "superneurons_rules", "minimal_rules", "liveness_alone", "floor_at_paper_batch_gib"},
      {},
      true};
  const auto networks = paper_networks();
  double ratio = 0, paper_ratio = 0;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const std::string_view model = networks[i].model;
    const std::int64_t paper = kTable5[i].batches.back();
    const std::int64_t rules = bench.largest_batch(in_device(model, "superneurons", Rules::superneurons));
    const std::int64_t minimal = bench.largest_batch(in_device(model, "superneurons", Rules::minimal));
    const std::int64_t liveness = bench.largest_batch(in_device(model, "liveness", Rules::superneurons));
    Setting at_paper = in_device(model, "superneurons", Rules::superneurons);
    at_paper.batch = paper;
    const Bytes floor = bench.plan(at_paper).result.floor[Tier::device];
    report.modelled(std::string(networks[i].name), "batch", static_cast<double>(paper), static_cast<double>(rules), 0,
                    1);
    const double second = static_cast<double>(kTable5[i].batches[3]) * static_cast<double>(networks.size());
    ratio += static_cast<double>(rules) / second;
    paper_ratio += static_cast<double>(paper) / second;
    series.rows.push_back({std::string(networks[i].name), fmt::format("{}", paper), fmt::format("{}", rules),
                           fmt::format("{}", minimal), fmt::format("{}", liveness),
                           fmt::format("{:.2f}", gibibytes(floor))});
  }
  report.counted("average over TensorFlow, paper's columns", "x", 1.8947, paper_ratio, 4, 2);
  report.modelled("average over TensorFlow, our batches", "x", 1.8947, ratio, 4, 2);
  report.notes = {
      "Ours is where the plan's floor reaches 12 GiB to the byte: convolutions without workspace, nothing for a CUDA "
      "context. The last column says what the paper's batch needs by the same count. The paper does not say what its "
      "runtime held besides.",
      "TensorFlow is the second best throughout. The paper's average gain does not come out of its own columns."};
  report.series.push_back(std::move(series));
  return report;
}

Report figure13(Workbench& bench) {
  Report report;
  report.setting =
      "sum of all tensors, each its own memory, at the batches of Table 5; with the fastest workspaces of a k40c";
  Series series{"figure13_gib", {"network"}, {}, true};
  for (const std::string_view framework : kFrameworks) series.columns.emplace_back(framework);
  series.columns.emplace_back("SuperNeurons_with_workspaces");
  const auto networks = paper_networks();
  double largest = 0;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    std::vector<std::string> row{std::string(networks[i].name)};
    double caffe = 0, last = 0, workspaces = 0;
    for (const std::int64_t batch : kTable5[i].batches) {
      if (batch == 0) {
        row.emplace_back("-");
        continue;
      }
      const Step step = bench.step({.model = networks[i].model, .batch = batch});
      Bytes data, scratch;
      for (const Storage& storage : step.storages)
        if (is_data(storage.tensor_class)) data += storage.bytes;
      for (std::size_t t = 0; t < step.ordered_tasks; ++t) scratch += step.algorithms_of(TaskId(t))[0].workspace;
      last = gibibytes(data);
      workspaces = gibibytes(data + scratch);
      if (caffe == 0) caffe = last;
      row.push_back(fmt::format("{:.1f}", last));
    }
    row.push_back(fmt::format("{:.1f}", workspaces));
    largest = std::max(largest, last / caffe);
    series.rows.push_back(std::move(row));
  }
  report.counted("largest ratio to Caffe", "x", 19.8, largest, 1, 1);
  report.notes = {
      "Data tensors grow in step with the batch, so the ratio is that of the batches, 16 at most (ResNet50 and 101). "
      "The paper puts the rest down to workspaces, whose sizes it does not give; the bars carry no numbers."};
  report.series.push_back(std::move(series));
  return report;
}

}  // namespace tide::reproduce::superneurons
