// First links of a chain that store each value separately, as fp32 ("none"), fp16 or bf16
// (compression/formats/half.h), contiguous and without a header. Little-endian.
#pragma once

#include "compression/codec/fixed_size_codec.h"

namespace motley {

[[nodiscard]] FixedSizeFormat fp32_format();
[[nodiscard]] FixedSizeFormat fp16_format();
[[nodiscard]] FixedSizeFormat bf16_format();

}  // namespace motley
