// Random numbers, and what drops values by them.
#include <algorithm>
#include <array>

#include "foreign/lowering.h"

namespace tide {
namespace {

void lower_random(const NodeContext& node) {
  Mask mask;
  if (const Known* const like = node.known(0)) {
    mask.extents = like->extents;
  } else {
    const Shape& shape = node.shape(0);
    for (const std::int64_t extent : shape.extents()) mask.extents.push_back({extent});
    mask.extents[0] = kBatch;
  }
  mask.low = node.number("low", 0);
  mask.high = node.number("high", 1);
  node.give(mask);
}

// Bernoulli(p): one with probability p.
void lower_bernoulli(const NodeContext& node) {
  const Known* const share = node.known(0);
  const std::optional<double> keep = share != nullptr ? one_value(*share) : std::nullopt;
  if (!keep) node.refuse("its probabilities are not one constant number");
  node.give(Mask{.extents = share->extents, .compared = true, .keep = *keep});
}

// random < constant, or the other way round
template <bool first_is_less>
void lower_compare(const NodeContext& node) {
  for (const std::size_t place : {std::size_t{0}, std::size_t{1}}) {
    const Mask* const mask = std::get_if<Mask>(&node.value(place));
    if (mask == nullptr) continue;
    const std::optional<double> limit = node.scalar(1 - place);
    if (!limit || mask->compared || mask->high <= mask->low)
      node.refuse("it compares random numbers with something that is not one constant number");
    Mask result = *mask;
    const double share = std::clamp((*limit - mask->low) / (mask->high - mask->low), 0.0, 1.0);
    result.compared = true;
    result.keep = (place == 0) == first_is_less ? share : 1 - share;
    return node.give(result);
  }
  // x > limit
  const std::size_t larger = first_is_less ? 1 : 0;
  const std::optional<double> limit = node.scalar(1 - larger);
  if (!limit || !std::holds_alternative<Made>(node.value(larger)))
    node.refuse("it compares computed values, for which there is no layer");
  Operation compared;
  compared.piece = Piece::above;
  compared.inputs = {node.made(larger)};
  compared.node = &node.node();
  compared.limit = *limit;
  node.give(node.operations().append(std::move(compared)));
}

double dropout_rate(const NodeContext& node) {
  if (node.node().domain == "tidepool") return node.number("rate", 0.5);
  if (node.has("ratio")) return node.number("ratio", 0.5);
  if (!node.has_input(1)) return 0.5;
  const std::optional<double> ratio = node.scalar(1);
  if (!ratio) node.refuse("its ratio is not one constant number");
  return *ratio;
}

void lower_dropout(const NodeContext& node) {
  const double rate = dropout_rate(node);
  if (rate == 0) return node.give(node.made(0));
  if (node.node().domain.empty() && node.scalar(2).value_or(0) == 0) ++node.lowering().restored_dropouts;
  node.give_layer(LayerKind::dropout, DropoutOptions{.rate = rate});
  const auto problem = std::make_shared<const std::string>(
      fmt::format("{}: its mask is read, for which there is no layer", describe(node.node())));
  node.give(Unknown{problem}, 1);
}

void lower_drop_path(const NodeContext& node) {
  const double rate = node.number("rate", 0.1);
  if (rate == 0) return node.give(node.made(0));
  node.give_layer(LayerKind::drop_path,
                  DropPathOptions{.rate = rate, .per_channel = node.integer("per_channel", 0) != 0});
}

constexpr std::array kRandomWords{
    Word{"", "RandomUniformLike", lower_random},
    Word{"", "Bernoulli", lower_bernoulli},
    Word{"", "Less", lower_compare<true>},
    Word{"", "LessOrEqual", lower_compare<true>},
    Word{"", "Greater", lower_compare<false>},
    Word{"", "GreaterOrEqual", lower_compare<false>},
    Word{"", "Dropout", lower_dropout},
    Word{"tidepool", "Dropout", lower_dropout},
    Word{"tidepool", "DropPath", lower_drop_path},
};

}  // namespace

std::span<const Word> random_words() { return kRandomWords; }

}  // namespace tide
