// Measures the throughput of codecs on one core, beside memcpy and a plain sum of the same values
// in the same rounds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// Rates are fp32 bytes of the slice, each counted once, per second of the thread's processor time:
// medians of the rounds. 0 for operations that a chain does not have.
struct CodecRates {
  std::string chain;
  double wire_bytes_per_value = 0;  // with error feedback, in the last round
  double copy_bytes_per_s = 0;      // memcpy, the reference for all other rates
  double sum_bytes_per_s = 0;       // a += b: the memory traffic of feedback and decode_add
  double encode_bytes_per_s = 0;
  double feedback_bytes_per_s = 0;  // GradientCompressor::encode: residual, codec, residual
  double momentum_bytes_per_s = 0;  // the same with momentum correction: topk
  double decode_bytes_per_s = 0;
  double decode_add_bytes_per_s = 0;
};

// Measures `count` normally distributed values in slices of `slice_count` (the last may be
// shorter), each with its own sender, like the buckets of a gradient. Each round runs every
// operation, so that other load on the machine affects all of them. Uses at most six times the
// memory of the values. kConfig if the text is not a chain. REQUIRES: count > 0, slice_count > 0,
// rounds > 0.
[[nodiscard]] Result<CodecRates> measure_codec_rates(const std::string& chain,
                                                     std::size_t count,
                                                     std::size_t slice_count,
                                                     int rounds);

}  // namespace motley
