// Views are where a damaged step could send a kernel outside its operands, so that all about them is
// proved before anything is played.
#include <algorithm>
#include <optional>

#include "plan/findings.h"
#include "step/buckets.h"

namespace tide::checker {
namespace {

// Nothing where an extent is below 1 or the bytes do not fit in 63 bits.
std::optional<std::int64_t> size_of(const Shape& shape, DataType type) {
  std::int64_t size = element_bytes(type);
  for (const std::int64_t extent : shape.extents())
    if (extent < 1 || __builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  return size;
}

// Some bytes of a tensor.
struct Range {
  std::int64_t begin = 0, end = 0;
};

class Views {
 public:
  Views(const Step& step, Findings& findings) : step_(step), findings_(findings) {}

  void check() {
    for (std::size_t t = 0; t < step_.tensors.size(); ++t)
      if (step_.tensors[t].order.rank() != step_.tensors[t].shape.rank())
        add("{} has {} extents in an order of {} axes", tensor_name(step_, TensorId(t)), step_.tensors[t].shape.rank(),
            step_.tensors[t].order.rank());
    for (std::size_t v = 0; v < step_.views.size(); ++v)
      if (step_.views[v].order.rank() != step_.views[v].shape.rank())
        add("view {} has {} extents in an order of {} axes", v, step_.views[v].shape.rank(),
            step_.views[v].order.rank());
    for (std::size_t o = 0; o < step_.operands.size(); ++o) check_operand(o);
    if (!findings_.empty() || step_.views.empty()) return;
    for (std::size_t t = 0; t < step_.tasks.size(); ++t) {
      check_in_place(TaskId(t));
      check_replay(TaskId(t));
    }
    check_parts();
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    findings_.add(FindingKind::malformed, format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::optional<Range> range(const Operand& operand) const {
    std::optional<std::int64_t> size = size_of(step_.shape_of(operand), step_.tensor(operand.tensor).type);
    // What lies as the backend likes may take more than its shape.
    if (size && operand.view.valid() && !step_.view(operand.view).bytes.is_zero())
      size = std::max(*size, step_.view(operand.view).bytes.count());
    Range result{step_.offset_of(operand).count(), 0};
    if (!size || __builtin_add_overflow(result.begin, *size, &result.end)) return std::nullopt;
    return result;
  }

  void check_operand(std::size_t index) {
    const Operand& operand = step_.operands[index];
    if (!operand.view.valid()) return;
    if (operand.view.index() >= step_.views.size()) return add("operand {} has a view that does not exist", index);
    const Tensor& tensor = step_.tensor(operand.tensor);
    const std::optional<std::int64_t> whole = size_of(tensor.shape, tensor.type);
    const std::optional<Range> part = range(operand);
    if (!whole || !part || part->end > std::min(*whole, step_.storage(tensor.storage).bytes.count()))
      return add("operand {} has a view that goes beyond {}", index, tensor_name(step_, operand.tensor));
    if (step_.view(operand.view).own) check_own(index, operand, *whole, *part);
    if (part->begin % element_bytes(tensor.type) != 0)
      add("operand {} has a view that begins within an element of {}", index, tensor_name(step_, operand.tensor));
  }

  // Every rank finds its own within the tensor, and nobody writes there, where the others' would be missing.
  void check_own(std::size_t index, const Operand& operand, std::int64_t whole, const Range& part) {
    std::int64_t all = 0;
    const bool fits = part.begin == 0 && !__builtin_mul_overflow(part.end, step_.options.ranks.count, &all);
    if (!fits || all != whole)
      add("operand {} is not one of {} equal parts of {}", index, step_.options.ranks.count,
          tensor_name(step_, operand.tensor));
    if (operand.access != Access::read)
      add("operand {} writes what is another part of {} on every rank", index, tensor_name(step_, operand.tensor));
  }

  // What takes a value's place must be as large as the value.
  void check_in_place(TaskId id) {
    const auto operands = step_.operands_of(id);
    for (const InPlacePair pair : step_.in_place_of(step_.task(id)))
      for (const std::int16_t position : {pair.source, pair.target})
        if (is_part(step_, operands[static_cast<std::size_t>(position)]))
          add("{} is in place through a part of {}", task_name(step_, id),
              tensor_name(step_, operands[static_cast<std::size_t>(position)].tensor));
  }

  // A replay makes its tensors again, not parts of them.
  void check_replay(TaskId id) {
    if (step_.task(id).kind != TaskKind::replay) return;
    for (const Operand& operand : step_.operands_of(id))
      if (operand.access != Access::read && is_part(step_, operand))
        add("{} makes a part of {} again", task_name(step_, id), tensor_name(step_, operand.tensor));
  }

  // Parts of a tensor that are written lie side by side and are all of it, and what is added to it comes behind them.
  void check_parts() {
    std::vector<std::vector<Range>> parts(step_.tensors.size());
    std::vector<bool> wholes(step_.tensors.size(), false);
    for (std::uint32_t t = 0; t < step_.ordered_tasks; ++t)
      for (const Operand& operand : step_.operands_of(TaskId(t))) {
        if (operand.access == Access::read) continue;
        if (operand.access == Access::add && !(wholes[operand.tensor.index()] && !is_part(step_, operand)))
          check_added(TaskId(t), operand, parts[operand.tensor.index()]);
        else if (!is_part(step_, operand))
          wholes[operand.tensor.index()] = true;
        else if (wholes[operand.tensor.index()])
          add("{} writes a part of {} over what is there", task_name(step_, TaskId(t)),
              tensor_name(step_, operand.tensor));
        else
          parts[operand.tensor.index()].push_back(*range(operand));
      }
    for (std::size_t t = 0; t < parts.size(); ++t)
      if (!parts[t].empty()) check_tiles(TensorId(t), parts[t]);
  }

  // What is added to is there: it was written, as this part, or the step began with it.
  void check_added(TaskId task, const Operand& operand, const std::vector<Range>& parts) {
    const Range added = *range(operand);
    const TensorId entry = step_.storage(step_.tensor(operand.tensor).storage).entry;
    const bool written = std::ranges::any_of(
        parts, [&](const Range& part) { return part.begin == added.begin && part.end == added.end; });
    if (!operand.view.valid() || (!written && entry != operand.tensor))
      add("{} adds to a part of {} that is not there", task_name(step_, task), tensor_name(step_, operand.tensor));
  }

  void check_tiles(TensorId tensor, std::vector<Range>& parts) {
    std::sort(parts.begin(), parts.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    // In a bucket each part begins where a storage could.
    const auto next = [bucket = is_bucket(step_.tensor(tensor))](std::int64_t at) {
      return bucket ? Bytes(at).aligned().count() : at;
    };
    std::int64_t end = 0;
    for (const Range& part : parts) {
      if (part.begin != end)
        return add("the parts of {} {} at byte {}", tensor_name(step_, tensor),
                   part.begin < end ? "overlap" : "leave a gap", std::min(part.begin, end));
      end = next(part.end);
    }
    const std::optional<std::int64_t> whole = size_of(step_.tensor(tensor).shape, step_.tensor(tensor).type);
    // Of what is sharded, all ranks have equally much.
    const std::int64_t ranks = step_.options.ranks.count;
    const bool shared_out = step_.options.ranks.shard != Shard::none && is_bucket(step_.tensor(tensor)) && whole &&
                            end < *whole && *whole % ranks == 0 &&
                            *whole / ranks == share_of_bucket(Bytes(end), ranks).count();
    if (end != whole && !shared_out) add("the parts of {} end at byte {}", tensor_name(step_, tensor), end);
  }

  const Step& step_;
  Findings& findings_;
};

}  // namespace

void check_views(const Step& step, Findings& findings) { Views(step, findings).check(); }

}  // namespace tide::checker
