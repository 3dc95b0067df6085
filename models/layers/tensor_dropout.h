// Dropout of tensors on any device: the masks of DropoutStream, bit for bit, drawn where the tensor
// lies. They are computed in the device's own 64-bit integers by ATen's operations, so that no mask
// crosses from the host, and in slices, so that the integers take little memory beside the tensor.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/layers/dropout.h"

namespace motley {

// x, masked and scaled in place from the stream's first tile on. REQUIRES: x is fp32 and
// contiguous.
void drop_in_place(const DropoutStream& stream, const at::Tensor& x);

// The same for the rows of each x_RC of `some`, each row from the start of a tile of its own; x is
// a part of a larger matrix, where it begins at `first_row`. Masks are drawn once for all, since
// that takes a hundred operations. REQUIRES: there is one at least, all are fp32, of one size and
// on one device.
void drop_rows_in_place(const DropoutStream& stream, at::TensorList some, std::int64_t first_row);

}  // namespace motley
