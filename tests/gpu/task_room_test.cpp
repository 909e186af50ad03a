// What algorithms are chosen by, where several ranks have to choose alike. It takes no device.
#include "backend/cuda/task_room.h"

#include <gtest/gtest.h>

#include <map>

#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

// By what a task is on any number of ranks.
using Rooms = std::map<std::pair<std::size_t, TaskKind>, std::vector<Bytes>>;

Rooms rooms_of(const Step& step) {
  Rooms rooms;
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    const Task& task = step.tasks[t];
    // Each part is alike. Batch norms have one algorithm, and tasks that are not there on all numbers of ranks.
    if (!is_of_layer(task.kind) || task.first_sample != 0 || step.layer_kind(task) == LayerKind::batch_norm) continue;
    rooms[{task.layer.index(), task.kind}].push_back(cuda::operand_bytes(step, TaskId(t)));
  }
  return rooms;
}

TEST(TaskRoom, IsThatOfAnyNumberOfRanks) {
  for (const char* const model : {"resnet18@10", "alexnet@10"})
    for (const std::int64_t samples : {8, 64}) {
      const auto network = std::make_shared<const Network>(make_model(model, Shape{1, 3, 67, 67}));
      const auto step_on = [&](std::int64_t ranks) {
        StepOptions options{.batch = samples / ranks};
        options.ranks = {.count = ranks, .parts = 8};
        return build_step(network, options);
      };
      const Step alone = step_on(1);
      for (const std::int64_t ranks : {2, 4, 8}) {
        SCOPED_TRACE(fmt::format("{} of {} samples on {} ranks", model, samples, ranks));
        const Step step = step_on(ranks);
        EXPECT_EQ(cuda::largest_task(step), cuda::largest_task(alone));
        EXPECT_EQ(rooms_of(step), rooms_of(alone));
      }
    }
}

}  // namespace
}  // namespace tide
