// QuantisedWeight: a frozen matrix in 8 or 4 bits (docs/formats/package.md, "Quantised weights").
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "models/package/tensor_spec.h"

namespace motley {

class JsonFields;

struct QuantisedWeight {
  TensorSpec tensor;   // as the model has it: float32, bfloat16 or float16, two dimensions
  std::string codes;   // names of constants
  std::string scales;  // [rows, 1] or [1, columns]; in 4 bits [blocks, 1]
  std::string table;   // in 4 bits, of each byte of codes its two numbers; "" in 8 bits

  [[nodiscard]] bool has_four_bits() const { return !table.empty(); }
};

inline constexpr std::int64_t kQuantisedBlock = 64;  // elements of a scale in 4 bits

// How many blocks so many elements make; the last one may have places that mean nothing.
[[nodiscard]] constexpr std::int64_t quantised_blocks(std::int64_t elements) {
  return (elements + kQuantisedBlock - 1) / kQuantisedBlock;
}

// The member "quantised" of package.json; empty where it is absent. kCorrupt when its tensors are
// not among `tensors`, which the layers name, in the types and shapes that they must have.
[[nodiscard]] Result<std::map<std::string, QuantisedWeight>> read_quantised(
    const JsonFields& fields, const std::map<std::string, TensorSpec>& tensors);

}  // namespace motley
