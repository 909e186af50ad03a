// Concat and split, forward and backward: rows of channels copied between one wide tensor
// and several narrow ones.
#include <cstring>

#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

Recipe channels_recipe(const TaskView& view, const ContextPtr& context, bool concat) {
  const int threads = threads_of(context);
  const bool gather = concat == view.is_forward();  // from the parts into the whole
  const Role part_role = concat ? (view.is_forward() ? Role::x : Role::dx) : (view.is_forward() ? Role::y : Role::dy);
  const Role whole_role = concat ? (view.is_forward() ? Role::y : Role::dy) : (view.is_forward() ? Role::x : Role::dx);
  const Shape shape = concat ? view.output() : view.input();
  const std::size_t whole = gather ? view.written(whole_role) : view.read(whole_role);
  const std::vector<ChannelPart> parts =
      channel_parts(view, gather ? view.all_read(part_role) : view.all_written(part_role));
  const std::int64_t rows = shape.batch() * shape.positions(), width = shape.channels();
  return recipe([=](const Launch& launch) {
    auto* wide = output_of<float>(launch, whole);
    parallel_ranges(threads, rows, kElementGrain / width + 1, [&](std::int64_t begin, std::int64_t end) {
      for (const ChannelPart& part : parts) {
        auto* narrow = output_of<float>(launch, part.position);
        const std::size_t bytes = static_cast<std::size_t>(part.channels) * sizeof(float);
        for (std::int64_t row = begin; row < end; ++row) {
          float* in_wide = wide + row * width + part.offset;
          float* in_narrow = narrow + row * part.channels;
          std::memcpy(gather ? in_wide : in_narrow, gather ? in_narrow : in_wide, bytes);
        }
      }
    });
  });
}

}  // namespace

Recipe concat_recipe(const TaskView& view, const ContextPtr& context) { return channels_recipe(view, context, true); }
Recipe split_recipe(const TaskView& view, const ContextPtr& context) { return channels_recipe(view, context, false); }

}  // namespace tide::cpu
