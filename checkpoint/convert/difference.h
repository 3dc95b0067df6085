// How far the tensors of two checkpoints, or of other folders of weights, lie apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/work_watch.h"

namespace motley {

// Of two tensors of one name and shape, compared as fp32 values and counted with in double.
struct TensorDifference {
  std::string name;  // A's
  std::vector<std::int64_t> shape;
  std::string dtype_a;
  std::string dtype_b;
  std::uint64_t values = 0;
  std::uint64_t differing = 0;  // whose bits as fp32 differ
  double largest = 0;           // the largest |a - b|; infinite where one is not finite
  // The L2 norm of a - b over that of a's finite values: 0 where nothing differs, infinite where a
  // is all zeros and b is not, or `largest` is infinite.
  double relative = 0;
};

// What is not compared: "" where it is absent, else its type and shape.
struct OddTensor {
  std::string name;
  std::string in_a;
  std::string in_b;
};

struct Difference {
  std::vector<TensorDifference>
      tensors;                 // the largest relative difference first, equal ones by name
  std::vector<OddTensor> odd;  // by name
};

// Whether both hold the same tensors with the same types and the same bits.
[[nodiscard]] bool is_equal_to_the_bit(const Difference& difference);

// REQUIRES: the tensors are the readers', of one shape and of numbers that read_part reads.
[[nodiscard]] Result<TensorDifference> difference_of_tensors(const CheckpointReader& reader_a,
                                                             const StoredTensor& a,
                                                             const CheckpointReader& reader_b,
                                                             const StoredTensor& b,
                                                             WorkWatch& watch);

// Compares parameters, and the optimizer's state too where that is asked for. One name stands for
// all its weight_name_forms. kCorrupt when a file cannot be read, or is damaged as far as a
// manifest tells.
[[nodiscard]] Result<Difference> difference_of(const CheckpointReader& a,
                                               const CheckpointReader& b,
                                               bool with_optimizer,
                                               WorkWatch& watch);

}  // namespace motley
