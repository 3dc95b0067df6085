// SliceEncoder: what sums of gradients are made into for their way between machines. The seam
// between the sum over replicas and compression: a codec without memory comes in by CodecEncoder,
// one that keeps what it did not send by FeedbackEncoder (pipeline/reduce/feedback_encoder.h).
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

// A WireSlice names what is encoded: the values, and whether they are one machine's sums
// (kCrossReduceScatter) or those of all (kCrossAllGather). A rank encodes the same slices in every
// step, each once, so that phase and values name what it kept of them.
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

  // Writes values_N to wire_B, returns the bytes written, and leaves in values_N what decode()
  // makes of them: all ranks go on with the same values, the one that encoded included. REQUIRES:
  // wire_B.size() >= bytes_max(values_N.size()) == bytes_max(slice.values.count).
  virtual std::size_t encode(const WireSlice& slice,
                             std::span<float> values_N,
                             std::span<std::byte> wire_B) = 0;

  // Where a rank adds up a slice for all machines (kCrossAllGather): before it adds those of the
  // others, which went through encode(), to its own machine's. Does to that one what encode() does
  // to a machine's sums but for rounding them.
  virtual void begin_sum(const WireSlice& slice, std::span<float> values_N) = 0;

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

  void begin_sum(const WireSlice& /*slice*/, std::span<float> /*values_N*/) override {}

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override;
  Result<void> decode_add(std::span<const std::byte> wire_B, std::span<float> sum_N) const override;

 private:
  const Codec& codec_;
};

}  // namespace motley
