// Plans as JSON files: self-contained (task, tensor and storage tables included), so that
// another program, or a later version, can check and draw them without the network.
#pragma once

#include <filesystem>
#include <string>

#include "plan/plan.h"

namespace tide {

[[nodiscard]] std::string to_json(const Plan& plan);
// Throws an Error that says what is wrong for anything that is not a plan. The result has
// the form of a plan; whether it is a valid one is for the checker to say.
[[nodiscard]] Plan plan_from_json(const std::string& text);

void save_plan(const Plan& plan, const std::filesystem::path& path);
// Reads, parses and checks.
[[nodiscard]] Plan load_plan(const std::filesystem::path& path);

}  // namespace tide
