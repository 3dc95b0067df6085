// The chain link lowrank(RANK), with how the factors are written.
#pragma once

#include <memory>

#include "compression/codec/codec.h"
#include "compression/lowrank/low_rank_coder.h"

namespace motley {

// The codec has no residual: what is not sent is lost. compression/feedback/gradient_compressor.h
// sends the rest later. bytes_max() is exact; decoding refuses every other size.
[[nodiscard]] std::unique_ptr<const Codec> make_low_rank_codec(const LowRankCoder& coder);

}  // namespace motley
