// Parts of a reference that can be read independently. Private to models/package. kCorrupt, naming
// the position, if one does not follow docs/formats/package.md.
#pragma once

#include <vector>

#include "base/json/json_fields.h"
#include "base/result.h"
#include "models/package/reference/reference.h"

namespace motley {

// The range of integers: from `low` to below `limit`. Truth values are 0 and 1.
struct IntegerBounds {
  std::int64_t low = 0;
  std::int64_t limit = 1;
};

inline constexpr IntegerBounds kTruthValues{0, 2};

[[nodiscard]] Result<ValuePieces> read_pieces(const JsonFields& list,
                                              const TensorSpec& tensor,
                                              IntegerBounds integers);

[[nodiscard]] Result<UniformValues> read_uniform(const JsonFields& fields);

// An expected result. count = 0: any number of elements.
struct ExpectedTensor {
  RoleIndex role;
  std::int64_t count = 0;
};

[[nodiscard]] Result<std::vector<ReferenceTensor>> read_compared(
    const JsonFields& fields, const char* key, const std::vector<ExpectedTensor>& expected);

}  // namespace motley
