// Philox (base/philox.h) in ATen's operations on any device, in the device's own 64-bit integers.
// Private to models/random and models/layers.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/random/philox_tile.h"

namespace motley {

// Word w of `blocks` consecutive blocks from that of `first` on, in element w: int64, from 0 to
// below 2^32. Takes about a hundred operations and five times the memory of the result. REQUIRES:
// the numbers of all blocks fit 32 bits.
[[nodiscard]] std::array<at::Tensor, 4> philox_words(const PhiloxCounter& first,
                                                     std::int64_t blocks,
                                                     c10::Device device);

// The upper 32 bits of unsigned 64-bit numbers, such as products that wrapped around.
[[nodiscard]] at::Tensor high_word(const at::Tensor& numbers);

}  // namespace motley
