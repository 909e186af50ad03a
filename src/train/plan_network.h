// Planning in one call, without running anything: what `tide plan` does.
#pragma once

#include "train/session_options.h"

namespace tide {

// Plans one step as a session with these options plans the first of its own: for the backend that they name, or for
// `target` where there is one, such as a device that is known by its data sheet alone.
// A budget that is too small is an answer: the result then has no plan, but says what is needed and by which task.
[[nodiscard]] PlanResult plan_network(const NetworkPtr& network, const StepVariant& variant = {},
                                      const SessionOptions& options = {}, const Target* target = nullptr);

// Why a result has no plan, in words for people: "it needs 8421376 bytes (8.03 MiB) of device memory, at conv1
// forward".
[[nodiscard]] std::string shortage_text(const PlanResult& result);

}  // namespace tide
