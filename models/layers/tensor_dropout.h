// Dropout of tensors on any device: the masks of DropoutStream, bit for bit, drawn on the tensor's
// device. They are computed in the device's 64-bit integers by ATen operations, so that no mask is
// copied from the host, and in slices, so that the integers take little memory.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/layers/dropout.h"

namespace motley {

// Masks and scales x in place, from the stream's first tile on. REQUIRES: x is fp32 and contiguous.
void drop_in_place(const DropoutStream& stream, const at::Tensor& x);

// The same for the rows of each x_RC of `some`; each row begins a new tile. x is a part of a larger
// matrix, in which it begins at `first_row`. Masks are drawn once for all, since that takes a
// hundred operations. REQUIRES: `some` is not empty, all are fp32, of one size and on one device.
void drop_rows_in_place(const DropoutStream& stream, at::TensorList some, std::int64_t first_row);

}  // namespace motley
