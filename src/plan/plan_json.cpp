#include "plan/plan_json.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file_text.h"
#include "plan/checker.h"
#include "plan/json_rows.h"
#include "plan/step_json.h"

namespace tide {
namespace {

using nlohmann::json;

constexpr int kVersion = 2;

// What only the other kind of op has is null.
json write_op(const Op& op) {
  if (op.is_run())
    return {"run",
            lane_name(op.lane),
            op.run().task.value(),
            op.run().algorithm,
            op.run().workspace.count(),
            nullptr,
            nullptr,
            nullptr,
            op.waits};
  return {"copy",
          lane_name(op.lane),
          nullptr,
          nullptr,
          nullptr,
          op.copy().storage.value(),
          tier_name(op.copy().from),
          tier_name(op.copy().to),
          op.waits};
}

constexpr std::int64_t kHighestAddress = std::int64_t{1} << 60;

Op read_op(const json& item) {
  JsonRow row(item);
  const json& kind = row.next();
  Op op;
  op.lane = row.named<Lane>(lane_name, kLanes);
  if (kind == "run") {
    Run run;
    run.task = row.id<TaskId>();
    run.algorithm = row.uint32();
    run.workspace = Bytes(row.number(0, kHighestAddress));
    op.what = run;
    for (int skipped = 0; skipped < 3; ++skipped) row.next();
  } else if (kind == "copy") {
    for (int skipped = 0; skipped < 3; ++skipped) row.next();
    Copy copy;
    copy.storage = row.id<StorageId>();
    copy.from = row.named<Tier>(tier_name, kTiers);
    copy.to = row.named<Tier>(tier_name, kTiers);
    op.what = copy;
  } else {
    throw Error("an op is a {}, not a run or a copy", kind.dump());
  }
  for (const json& wait : row.next()) op.waits.push_back(wait.get<std::int32_t>());
  return op;
}

json write_phase(const Phase& phase) {
  json ops = json_table({"kind", "lane", "task", "algorithm", "workspace", "storage", "from", "to", "waits"});
  for (const Op& op : phase.ops) ops["rows"].push_back(write_op(op));
  json residencies = json_table({"storage", "tier", "first", "last", "address"});
  for (const Residency& r : phase.residencies)
    residencies["rows"].push_back({r.storage.value(), tier_name(r.tier), r.first, r.last, r.address.count()});
  return {{"repeat", phase.repeat}, {"step", step_to_json(*phase.step)}, {"ops", ops}, {"residencies", residencies}};
}

Phase read_phase(const json& source) {
  Phase phase;
  phase.repeat = source.at("repeat").get<std::int32_t>();
  phase.step = std::make_shared<const Step>(step_from_json(source.at("step")));
  for (const json& item : json_rows(source, "ops")) phase.ops.push_back(read_op(item));
  for (const json& item : json_rows(source, "residencies")) {
    JsonRow row(item);
    Residency r;
    r.storage = row.id<StorageId>();
    r.tier = row.named<Tier>(tier_name, kTiers);
    r.first = row.int32();
    r.last = row.int32();
    r.address = Bytes(row.number(0, kHighestAddress));
    phase.residencies.push_back(r);
  }
  return phase;
}

json write_budgets(const PerTier<std::optional<Bytes>>& budgets) {
  json result = json::object();
  for (const TierRow& row : kTierTable)
    result[std::string(row.name)] = budgets[row.tier] ? json(budgets[row.tier]->count()) : json(nullptr);
  return result;
}

PerTier<std::optional<Bytes>> read_budgets(const json& source) {
  PerTier<std::optional<Bytes>> budgets;
  for (const TierRow& row : kTierTable)
    // Plans of earlier versions do not know all tiers.
    if (const auto value = source.find(row.name); value != source.end() && !value->is_null())
      budgets[row.tier] = Bytes(value->get<std::int64_t>());
  return budgets;
}

}  // namespace

std::string to_json(const Plan& plan) {
  json phases = json::array();
  for (const Phase& phase : plan.phases) phases.push_back(write_phase(phase));
  const json result{{"tidepool_plan", kVersion},
                    {"policy", plan.policy},
                    {"numerics", numerics_name(plan.numerics)},
                    {"memory", write_budgets(plan.memory)},
                    {"fingerprint", plan.fingerprint},
                    {"phases", phases}};
  return result.dump();
}

Plan plan_from_json(const std::string& text) {
  try {
    const json source = json::parse(text);
    if (!source.is_object() || !source.contains("tidepool_plan")) throw Error("it is not a Tidepool plan");
    if (source.at("tidepool_plan").get<int>() != kVersion)
      throw Error("it has version {}, this program reads {}; make it again with tide plan --save",
                  source.at("tidepool_plan").dump(), kVersion);
    Plan plan;
    plan.policy = source.at("policy").get<std::string>();
    plan.numerics = numerics_from_name(source.at("numerics").get<std::string>());
    plan.memory = read_budgets(source.at("memory"));
    plan.fingerprint = source.at("fingerprint").get<std::string>();
    for (const json& phase : source.at("phases")) plan.phases.push_back(read_phase(phase));
    return plan;
  } catch (const json::exception& error) {
    throw Error("the plan is damaged: {}", error.what());
  }
}

void save_plan(const Plan& plan, const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_json(plan) << '\n';
  file.close();
  if (!file) throw Error("{} could not be written; check the folder and the free space", path.string());
}

Plan load_plan(const std::filesystem::path& path) {
  constexpr std::int64_t kLargest = std::int64_t{4} << 30;
  const std::string text = read_text(path, Bytes(kLargest), "a plan");
  try {
    Plan plan = plan_from_json(text);
    require_valid(plan);
    return plan;
  } catch (const Error& problem) {
    throw Error("{}: {}", path.string(), problem.what());
  }
}

}  // namespace tide
