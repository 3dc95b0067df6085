// SliceEncoder: the encoding of an all-reduce's values between machines. It separates all-reduce
// from compression: CodecEncoder wraps a codec without state, FeedbackEncoder one with error
// feedback (pipeline/collectives/feedback_encoder.h).
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "compression/codec/codec.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

// A WireSlice identifies what is encoded: the values, and whether they are one machine's sums
// (kCrossReduceScatter) or the totals (kCrossAllGather). A rank encodes the same slices in every
// step, each once, so phase and values identify the slice's error-feedback state.
struct WireSlice {
  ReducePhase phase = ReducePhase::kCrossReduceScatter;
  ValueRange values;
  std::int64_t step = 1;  // the first is 1
};

class SliceEncoder {
 public:
  virtual ~SliceEncoder() = default;

  // Upper bound, in bytes, of what encode() writes for `count` values.
  [[nodiscard]] virtual std::size_t bytes_max(std::size_t count) const = 0;

  // Writes values_N to wire_B, returns the bytes written, and sets values_N to what decode()
  // returns for them, so that all ranks, the encoding one included, continue with the same values.
  // REQUIRES: wire_B.size() >= bytes_max(values_N.size()) == bytes_max(slice.values.count).
  virtual std::size_t encode(const WireSlice& slice,
                             std::span<float> values_N,
                             std::span<std::byte> wire_B) = 0;

  // Called on the rank that adds up a slice for all machines (kCrossAllGather), with its own
  // machine's values, before it adds the others', which went through encode(). Applies the state
  // changes of encode() to them, without rounding.
  virtual void begin_reduction(const WireSlice& slice, std::span<float> values_N) = 0;

  // Behaves as Codec::decode.
  virtual Result<void> decode(std::span<const std::byte> wire_B,
                              std::span<float> values_N) const = 0;

  // Behaves as Codec::decode_add.
  virtual Result<void> decode_add(std::span<const std::byte> wire_B,
                                  std::span<float> sum_N) const = 0;
};

// The codec must outlive it.
class CodecEncoder final : public SliceEncoder {
 public:
  explicit CodecEncoder(const Codec& codec) : codec_(codec) {}

  [[nodiscard]] std::size_t bytes_max(std::size_t count) const override;
  std::size_t encode(const WireSlice& slice,
                     std::span<float> values_N,
                     std::span<std::byte> wire_B) override;

  void begin_reduction(const WireSlice& /*slice*/, std::span<float> /*values_N*/) override {}

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override;
  Result<void> decode_add(std::span<const std::byte> wire_B, std::span<float> sum_N) const override;

 private:
  const Codec& codec_;
};

}  // namespace motley
