// Tidepool as a library: all that a program needs to plan and train networks within a budget, in the order of the
// pipeline. Installed as <tidepool/tidepool.h>; its CMake target is tidepool::tidepool.
//
//   auto network = std::make_shared<const tide::Network>(tide::make_model("resnet50"));
//   tide::PlanResult result = tide::plan_network(network, {.batch = 64}, {.planner =
//   tide::within(tide::parse_size("2GiB"))}); if (result.plan)
//     fmt::print("{} within the budget\n", tide::format_size(tide::summarize(*result.plan).peak[tide::Tier::device]));
//   else
//     fmt::print("{}\n", tide::shortage_text(result));
//
// What is left out of the options is what the program `tide` does. What goes wrong is a tide::Error, whose text is one
// line; a budget that is too small is an answer instead. See examples/ for whole programs.
#pragma once

// Sizes, shapes, errors.
#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"
#include "base/shape.h"
#include "base/size_text.h"
#include "base/tier.h"

// Networks: built in code, from the zoo, from files and graphs of other frameworks, with weights; changed for training.
#include "foreign/lower.h"
#include "formats/network_json.h"
#include "formats/safetensors.h"
#include "models/model.h"
#include "models/weights.h"
#include "network/adapt.h"
#include "network/builder.h"
#include "network/kind.h"
#include "network/network.h"
#include "network/reordered.h"
#include "zoo/zoo.h"

// A network's step, and how long its tasks take: modelled, by data sheets, measured.
#include "cost/device_model.h"
#include "cost/devices.h"
#include "cost/model.h"
#include "cost/profile.h"
#include "cost/work.h"
#include "step/build.h"
#include "step/step.h"

// Plans: proved, timed, summed up, kept in files.
#include "plan/checker.h"
#include "plan/plan.h"
#include "plan/plan_json.h"
#include "plan/summary.h"
#include "plan/timeline.h"

// Planning a step, and how far from the limit that is.
#include "planner/bound/lower_bound.h"
#include "planner/options.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/search/search.h"

// Planning and training a network, on a backend or in double precision.
#include "backend/backend.h"
#include "backend/reference/interpreter.h"
#include "data/dataset.h"
#include "data/open.h"
#include "data/words.h"
#include "train/checkpoint.h"
#include "train/count_labels.h"
#include "train/initialize.h"
#include "train/plan_network.h"
#include "train/schedule.h"
#include "train/session.h"
#include "train/target.h"
#include "train/trainer.h"
#include "train/usual.h"

// The largest batch, or the deepest network, that a budget holds.
#include "report/fit.h"
