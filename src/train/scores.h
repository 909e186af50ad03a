// How good answers are: the right class first, or among the first five; and of images of classes, how well areas agree.
#pragma once

#include <optional>
#include <vector>

#include "train/session.h"

namespace tide {

class Scores {
 public:
  // REQUIRES: a network with a loss over classes.
  explicit Scores(const Network& network);

  void add(const Session::Answers& answers);

  [[nodiscard]] double top1() const { return share(first_); }
  [[nodiscard]] double top5() const { return share(among_five_); }
  // Over the classes that there are: what answers and labels share of what either has. Nothing where a sample has one
  // answer.
  [[nodiscard]] std::optional<double> mean_intersection_over_union() const;

 private:
  struct Head {
    std::string layer;
    std::int64_t offset = 0, positions = 0, classes = 0;
    bool soft = false;  // labels are probabilities
  };
  [[nodiscard]] double share(std::int64_t count) const {
    return answers_ > 0 ? static_cast<double>(count) / static_cast<double>(answers_) : 0;
  }
  [[nodiscard]] std::int64_t label_of(const Head& head, std::span<const std::int32_t> labels,
                                      std::int64_t position) const;

  std::vector<Head> heads_;
  std::int64_t labels_per_sample_ = 0, answers_ = 0, first_ = 0, among_five_ = 0;
  std::vector<std::int64_t> shared_, answered_, labelled_;  // by class
};

// Positions of the largest values, the largest first; of equal ones the first.
[[nodiscard]] std::vector<std::size_t> largest(std::span<const float> values, std::size_t count);

}  // namespace tide
