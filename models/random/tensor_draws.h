// The numbers of a DrawStream as tensors, with the same bits on every device.
//
// The CPU converts words one by one. Other devices use ATen operations: 64-bit integers for the
// words, and fp64 operations that each round once for normal and exponential numbers. They work in
// slices to limit the memory of intermediate values. For a device without fp64 the host computes
// the normal and exponential numbers.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "models/package/draws.h"
#include "models/random/draw_stream.h"

namespace motley {

// Numbers first, first + 1, …, `count` in all, of the draw `drawn` from the stream. Number i uses
// word i; integer i uses words 2 i, the upper half of its bits, and 2 i + 1.
[[nodiscard]] at::Tensor draw_numbers(const DrawStream& stream,
                                      const DrawnNumbers& drawn,
                                      std::uint64_t first,
                                      std::int64_t count,
                                      c10::Device device);

}  // namespace motley
