// A linear program, min cost x with row_lower <= A x <= row_upper and x in a box, and what can be said for certain
// about its optimum.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tide {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

class LinearProgram {
 public:
  using Column = std::int32_t;
  using Row = std::int32_t;
  struct Entry {
    Row row;
    double coefficient;
  };

  // Boxes are finite, which is what makes bound() possible.
  Column add_column(double lower, double upper, double cost = 0);
  Row add_row(double lower, double upper);
  void add(Row row, Column column, double coefficient) { entries_[index(column)].push_back({row, coefficient}); }

  // A number that no feasible x is below, for any multipliers of the rows at all: they need not be
  // optimal, nor exact. With the optimal ones it is the optimum.
  [[nodiscard]] double bound(const std::vector<double>& multipliers) const;

  [[nodiscard]] std::size_t columns() const { return cost_.size(); }
  [[nodiscard]] std::size_t rows() const { return row_lower_.size(); }
  [[nodiscard]] const std::vector<double>& lower() const { return lower_; }
  [[nodiscard]] const std::vector<double>& upper() const { return upper_; }
  [[nodiscard]] const std::vector<double>& cost() const { return cost_; }
  [[nodiscard]] const std::vector<double>& row_lower() const { return row_lower_; }
  [[nodiscard]] const std::vector<double>& row_upper() const { return row_upper_; }
  [[nodiscard]] const std::vector<Entry>& entries(Column column) const { return entries_[index(column)]; }

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

  std::vector<double> lower_, upper_, cost_, row_lower_, row_upper_;
  std::vector<std::vector<Entry>> entries_;  // by column
};

// Multipliers of the rows at the optimum, or close to it after so many iterations; nothing where
// the build has no solver.
[[nodiscard]] std::optional<std::vector<double>> solve(const LinearProgram& program, int iterations);

}  // namespace tide
