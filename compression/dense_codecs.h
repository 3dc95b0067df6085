// The first links of a chain that keep every value by itself, as fp32 ("none"), fp16 or bf16
// (compression/half.h), one after the other without a header. Little-endian.
#pragma once

#include <memory>

#include "compression/codec.h"

namespace motley {

[[nodiscard]] std::unique_ptr<const Codec> make_fp32_codec();
[[nodiscard]] std::unique_ptr<const Codec> make_fp16_codec();
[[nodiscard]] std::unique_ptr<const Codec> make_bf16_codec();

}  // namespace motley
