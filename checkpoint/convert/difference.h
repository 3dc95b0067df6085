// The differences between the tensors of two checkpoints or other folders of weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/work_observer.h"

namespace motley {

// Two tensors of one name and shape, compared as fp32 values; computed in double.
struct TensorDifference {
  std::string name;  // A's
  std::vector<std::int64_t> shape;
  std::string dtype_a;
  std::string dtype_b;
  std::uint64_t values = 0;
  std::uint64_t differing = 0;  // values with different bits as fp32
  double largest = 0;           // the largest |a - b|; infinite if a value is not finite
  // The L2 norm of a - b over that of a's finite values: 0 if nothing differs, infinite if a is all
  // zeros and b is not, or `largest` is infinite.
  double relative = 0;
};

// A tensor that is not compared; in_a and in_b: "" if absent, else its type and shape.
struct MismatchedTensor {
  std::string name;
  std::string in_a;
  std::string in_b;
};

struct Difference {
  std::vector<TensorDifference> tensors;     // largest relative difference first, then by name
  std::vector<MismatchedTensor> mismatched;  // by name
};

// Whether both contain the same tensors with the same types and the same bits.
[[nodiscard]] bool is_equal_to_the_bit(const Difference& difference);

// REQUIRES: the tensors belong to the readers, have one shape and dtypes that read_part supports.
[[nodiscard]] Result<TensorDifference> difference_of_tensors(const CheckpointReader& reader_a,
                                                             const StoredTensor& a,
                                                             const CheckpointReader& reader_b,
                                                             const StoredTensor& b,
                                                             WorkObserver& watch);

// Compares parameters, and optimizer state too if requested. A name matches all of its
// weight_name_forms. kCorrupt if a file cannot be read, or does not match a manifest.
[[nodiscard]] Result<Difference> difference_of(const CheckpointReader& a,
                                               const CheckpointReader& b,
                                               bool with_optimizer,
                                               WorkObserver& watch);

}  // namespace motley
