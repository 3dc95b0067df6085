// The numbers of a DrawStream as tensors on any device, bit for bit the same on each.
//
// The processor converts words one by one. Another device computes words in its own 64-bit integers
// and normal and exponential numbers in fp64, by ATen's operations that each round once, in slices,
// so that intermediate values take little memory; a device without fp64 gets these from the host.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/package/draws.h"
#include "models/random/draw_stream.h"

namespace motley {

// Numbers first, first + 1, … of what `drawn` draws from the stream, `count` of them. A number
// takes one word of the same place; an integer takes two, the upper half of its bits first.
[[nodiscard]] at::Tensor draw_numbers(const DrawStream& stream,
                                      const DrawnNumbers& drawn,
                                      std::uint64_t first,
                                      std::int64_t count,
                                      c10::Device device);

}  // namespace motley
