#include "backend/cpu/clones.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"
#include "base/random.h"

namespace tide::cpu {
namespace {

// What names the mask of one sample.
struct Mask {
  std::uint64_t seed, step;
  std::uint32_t layer;
  float rate;
};

// Elements [4 * first, end) of one sample; the mask is made from its counters, never stored.
TIDE_CLONES void drop(const Mask& mask, std::uint64_t sample, const float* from, float* to, std::int64_t first,
                      std::int64_t end) {
  const float scale = 1.0F / (1.0F - mask.rate);
  for (std::int64_t block = first; 4 * block < end; ++block) {
    const Random4 bits =
        random_block(mask.seed, RandomUse::dropout, mask.step, mask.layer, sample, static_cast<std::uint64_t>(block));
    const std::int64_t size = end - 4 * block < 4 ? end - 4 * block : 4;
    for (std::int64_t i = 0; i < size; ++i) {
      const bool keep = to_unit(bits[static_cast<std::size_t>(i)]) >= mask.rate;
      to[4 * block + i] = keep ? from[4 * block + i] * scale : 0.0F;
    }
  }
}

}  // namespace

// Backward is forward with dy for x.
Recipe dropout_recipe(const TaskView& view, const ContextPtr& context) {
  const std::size_t from = view.is_forward() ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = view.is_forward() ? view.written(Role::y) : view.written(Role::dx);
  const Shape shape = view.input();
  const int threads = team_for(shape.elements(), threads_of(context));
  const auto rate = static_cast<float>(view.options<DropoutOptions>().rate);
  const auto layer = view.random_stream();
  constexpr std::int64_t kBlocks = 1024;  // of four numbers, drawn by one thread at a time
  const std::int64_t per_sample = shape.per_sample(), first = view.first_sample();
  const std::int64_t chunks = (per_sample + 4 * kBlocks - 1) / (4 * kBlocks);
  return recipe([=](const Launch& launch) {
    const Mask mask{launch.state->seed, launch.state->step, layer, rate};
    const auto first_sample = static_cast<std::uint64_t>(launch.state->first_sample + first);
    const auto* x = input_of<float>(launch, from);
    auto* y = output_of<float>(launch, to);
    parallel_parts(threads, shape.batch() * chunks, [&](std::int64_t part) {
      const std::int64_t sample = part / chunks, block = part % chunks * kBlocks;
      drop(mask, first_sample + static_cast<std::uint64_t>(sample), x + sample * per_sample, y + sample * per_sample,
           block, std::min(per_sample, 4 * (block + kBlocks)));
    });
  });
}

}  // namespace tide::cpu
