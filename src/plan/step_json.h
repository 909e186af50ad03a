// The step inside a plan file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "step/step.h"

namespace tide {

[[nodiscard]] nlohmann::json step_to_json(const Step& step);
// Throws an Error where it has not the form of a step; whether it makes sense is for the checker to say.
[[nodiscard]] Step step_from_json(const nlohmann::json& source);

}  // namespace tide
