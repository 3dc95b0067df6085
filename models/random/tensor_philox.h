// Philox (base/philox.h) as ATen operations on the 64-bit integers of any device. Private to
// models/random and models/layers.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/random/philox_tile.h"

namespace motley {

// Element w has word w of `blocks` consecutive blocks, beginning with the block of `first`: int64,
// from 0 to below 2^32. Takes about a hundred operations and five times the memory of the result.
// REQUIRES: the numbers of all blocks fit in 32 bits.
[[nodiscard]] std::array<at::Tensor, 4> philox_words(const PhiloxCounter& first,
                                                     std::int64_t blocks,
                                                     c10::Device device);

// The upper 32 bits of unsigned 64-bit numbers, such as products that wrapped around.
[[nodiscard]] at::Tensor high_word(const at::Tensor& numbers);

}  // namespace motley
