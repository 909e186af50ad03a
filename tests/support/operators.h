// One record per kind of layer, from which all operator tests are made: values against the
// double-precision reference, gradients against slopes, data types, replays, results in place, rules and
// sub-batches, network files, and the random networks of the fuzzers. A kind without one does not compile;
// what a record lacks fails tests/backend/kinds_test.cpp by name.
#pragma once

#include "support/operators/along_axis.h"
#include "support/operators/element_wise.h"
#include "support/operators/ends.h"
#include "support/operators/joins.h"
#include "support/operators/normalization.h"
#include "support/operators/places.h"
#include "support/operators/pointwise.h"
#include "support/operators/pools.h"
#include "support/operators/weighted.h"

namespace tide::test {

// By kind.
inline const std::vector<OperatorRecord>& operator_table() {
  static const std::vector<OperatorRecord> table{
#define TIDE_RECORD(kind) kind##_record(),
      TIDE_LAYER_KINDS(TIDE_RECORD)
#undef TIDE_RECORD
  };
  return table;
}

inline const OperatorRecord& record_of(LayerKind kind) { return operator_table()[static_cast<std::size_t>(kind)]; }

}  // namespace tide::test
