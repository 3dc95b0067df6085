// How fast one core runs codecs, beside memcpy and a plain sum of the same values in the same
// rounds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// Rates are fp32 bytes of the slice, each counted once, for a second of the thread's processor
// time: medians of the rounds. What a chain does not have is 0.
struct CodecRates {
  std::string chain;
  double wire_bytes_per_value = 0;  // with error feedback, in the last round
  double copy_bytes_per_s = 0;      // memcpy, which all else is best read as a share of
  double sum_bytes_per_s = 0;       // a += b: reads and writes what feedback and decode_add do
  double encode_bytes_per_s = 0;
  double feedback_bytes_per_s = 0;  // GradientCompressor::encode: residual, codec, residual
  double momentum_bytes_per_s = 0;  // the same with momentum: topk
  double decode_bytes_per_s = 0;
  double decode_add_bytes_per_s = 0;
};

// Measures with `count` normally distributed values in slices of `slice_count` (the last may be
// shorter), each with a sender of its own, as the buckets of a gradient; each round takes the
// operations in turn, so that what else the machine does falls on all. Takes the memory of six
// times the values at most. kConfig for what is not a chain. REQUIRES: count > 0, slice_count > 0,
// rounds > 0.
[[nodiscard]] Result<CodecRates> measure_codec_rates(const std::string& chain,
                                                     std::size_t count,
                                                     std::size_t slice_count,
                                                     int rounds);

}  // namespace motley
