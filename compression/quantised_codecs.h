// The first links of a chain that keep blocks of small integers with a scale: "int8" and "int4"
// (compression/block_quantise.h).
#pragma once

#include <memory>

#include "compression/codec.h"

namespace motley {

[[nodiscard]] std::unique_ptr<const Codec> make_int8_codec();
[[nodiscard]] std::unique_ptr<const Codec> make_int4_codec();

}  // namespace motley
