// A policy as a row of data: what it is called, what it can do, what it can be told. A policy is one file in policies/
// that defines `Policy NAME_policy()`, NAME being the file's; the build finds it there and puts it into the table.
#pragma once

#include <span>

#include "planner/planner.h"

namespace tide {

// An option of the command line that belongs to a policy.
struct PolicyOption {
  enum class Form : std::uint8_t { value, flag, list };  // list: several, one at a time
  std::string_view name;                                 // "--recursion"
  std::string_view help;
  std::string_view standard;  // what it is where nobody says anything, as one would write it
  Form form = Form::value;
  // Throws an Error that quotes the text where it is not possible. A flag's text is empty.
  void (*set)(PolicyOptions& options, const std::string& text) = nullptr;
};

struct Policy {
  std::string_view name;
  std::string_view description;
  PolicyFunction plan = nullptr;
  std::int32_t rank = 0;  // where it stands in tables and in which order auto tries: simple ones first
  bool moves = true;      // whether it copies anything
  // A time that none of its plans of a whole step beats within the budget; null: nobody knows.
  double (*seconds_at_least)(const Step& step, const CostModel& cost, const PlanningContext& context) = nullptr;
  // How many layers it could swap; null: it heeds neither StaggerOptions nor TriggerOptions (vdnn/swaps.h).
  std::int32_t (*swappable)(const Step& step, const PlanningContext& context) = nullptr;
  bool rests_parameters = false;  // whether it heeds PlanningContext::rest_in_host
  bool cuts = false;              // whether it cuts the batch by itself where it may
  // Whether its floor is never smaller for a larger batch, on devices of data sheets; null: it may be.
  bool (*floor_grows)(const PolicyOptions& options) = nullptr;
  bool tries_all_others = false;  // whether it is auto
  std::span<const PolicyOption> options = {};
};

// All of them, by rank.
[[nodiscard]] std::span<const Policy> policies();
// Throws an Error that lists the policies where the name is unknown.
[[nodiscard]] const Policy& find_policy(std::string_view name);

}  // namespace tide
