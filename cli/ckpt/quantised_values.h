// QuantisedValues: the float32 values of a package's matrix in 8 or 4 bits, as its layers compute
// them (docs/formats/package.md, "Quantised weights").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/convert/value_stream.h"
#include "checkpoint/safetensors.h"
#include "models/package/quantised_weight.h"

namespace motley {

class QuantisedValues final : public ValueStream {
 public:
  // REQUIRES: `file` has the weights of the package that `weight` is of, and outlives the stream.
  QuantisedValues(const SafetensorsFile& file, QuantisedWeight weight);
  [[nodiscard]] Result<void> next(std::span<float> values) override;

 private:
  [[nodiscard]] Result<void> next_of_eight_bits(std::span<float> values);
  [[nodiscard]] Result<void> next_of_four_bits(std::span<float> values);

  const SafetensorsFile& file_;
  QuantisedWeight weight_;
  std::uint64_t columns_;
  bool has_scales_of_rows_;
  std::vector<float> table_;   // in 4 bits
  std::vector<float> scales_;  // of the columns, or of what was read last
  std::vector<std::byte> codes_;
  std::uint64_t done_ = 0;
};

}  // namespace motley
