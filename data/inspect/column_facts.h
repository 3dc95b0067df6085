// ColumnFacts: what the values of a column are, without a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/progress_counter.h"
#include "data/files/columns.h"

namespace motley {

struct ColumnFacts {
  std::string role;  // "inputs", "targets", "held-out inputs"; with a name "inputs.mask"
  ElementType type = ElementType::kUint8;
  std::vector<std::int64_t> shape;  // of a sample
  std::uint64_t samples = 0;
  double lowest = 0;  // of the finite values
  double highest = 0;
  std::uint64_t values = 0;
  std::uint64_t not_finite = 0;
  // Of integers of one value a sample: how many samples have each. Empty for others, and if there
  // are more than 65,536.
  std::map<std::int64_t, std::uint64_t> classes;
};

// Reads the whole column. `work` counts what was read; nullptr: not counted.
[[nodiscard]] ColumnFacts facts_of(const Column& column, std::string role, ProgressCounter* work);

}  // namespace motley
