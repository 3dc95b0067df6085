// First links of a chain that store blocks of small integers with a scale: "int8" and "int4"
// (compression/formats/block_quantise.h).
#pragma once

#include "compression/codec/fixed_size_codec.h"

namespace motley {

[[nodiscard]] FixedSizeFormat int8_format();
[[nodiscard]] FixedSizeFormat int4_format();

}  // namespace motley
