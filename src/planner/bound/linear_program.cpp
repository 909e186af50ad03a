#include "planner/bound/linear_program.h"

#include <algorithm>

namespace tide {

LinearProgram::Column LinearProgram::add_column(double lower, double upper, double cost) {
  lower_.push_back(lower);
  upper_.push_back(upper);
  cost_.push_back(cost);
  entries_.emplace_back();
  return static_cast<Column>(cost_.size() - 1);
}

LinearProgram::Row LinearProgram::add_row(double lower, double upper) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  return static_cast<Row>(row_lower_.size() - 1);
}

// cost x = m A x + (cost - m A) x, and each of the two is bounded by itself: A x by the rows' limits, x by its box.
double LinearProgram::bound(const std::vector<double>& multipliers) const {
  double total = 0;
  std::vector<double> used(multipliers);
  for (std::size_t r = 0; r < used.size(); ++r) {
    const double limit = used[r] > 0 ? row_lower_[r] : row_upper_[r];
    if (limit == kUnbounded || limit == -kUnbounded) used[r] = 0;  // it says nothing in this direction
    if (used[r] != 0) total += used[r] * limit;
  }
  for (std::size_t c = 0; c < cost_.size(); ++c) {
    double reduced = cost_[c];
    for (const Entry& entry : entries_[c]) reduced -= used[index(entry.row)] * entry.coefficient;
    total += std::min(reduced * lower_[c], reduced * upper_[c]);
  }
  return total;
}

}  // namespace tide
