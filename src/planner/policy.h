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
  std::int32_t rank = 0;          // where it stands in tables and in which order auto tries: simple ones first
  bool rests_parameters = false;  // whether it heeds PlanningContext::rest_in_host
  // Whether it cuts the batch by itself where it may; many: over so many sizes that a step which is cut within itself
  // takes minutes to plan.
  enum class Cuts : std::uint8_t { never, few_sizes, many_sizes } cuts = Cuts::never;
  // auto: is it auto itself; what it begins with, because it fits wherever anything does; what is another policy where
  // the batch is whole.
  bool tries_all_others = false;
  bool comes_first = false;
  bool another_when_whole = false;
  PolicyFunction plan_smallest = nullptr;  // the same with the smallest algorithms, for where the fastest do not fit
  std::span<const PolicyOption> options = {};
};

// All of them, by rank.
[[nodiscard]] std::span<const Policy> policies();
// Throws an Error that lists the policies where the name is unknown.
[[nodiscard]] const Policy& find_policy(std::string_view name);

}  // namespace tide
