// FeedbackEncoder: encodes the values of an all-reduce between machines with error feedback. Each
// slice that this rank encodes has a GradientCompressor, which stores the error-feedback residual
// and adds it to the next step's values. One encoder serves one chunk.
//
// With momentum (CompressorOptions), each machine's own gradient is momentum-corrected before it is
// added to others: in encode(), or in begin_reduction() on the rank that adds up for all machines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/collectives/slice_encoder.h"
#include "pipeline/schedule/step_effect.h"

namespace motley {

class FeedbackEncoder final : public SliceEncoder {
 public:
  // kConfig as GradientCompressor::make.
  [[nodiscard]] static Result<std::unique_ptr<FeedbackEncoder>> make(
      const CompressorOptions& options);

  [[nodiscard]] std::size_t bytes_max(std::size_t count) const override {
    return codec_->bytes_max(count);
  }

  std::size_t encode(const WireSlice& slice,
                     std::span<float> values_N,
                     std::span<std::byte> wire_B) override;
  void begin_reduction(const WireSlice& slice, std::span<float> values_N) override;
  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override;
  Result<void> decode_add(std::span<const std::byte> wire_B, std::span<float> sum_N) const override;

  // Called after the vote on a step whose slices were encoded. For a skipped step, residuals are
  // dropped: they may contain the values that made it invalid. For a step without targets, the
  // state before the step is restored: its gradient was zero, but its messages sent residuals that
  // were not used.
  void end_step(StepEffect effect);

  // Adds this rank's state to values_N, the values of the chunk. Checkpoints store the result: the
  // total of the residuals over all ranks is what later steps still have to send.
  void add_feedback(FeedbackKind what, std::span<float> values_N);
  // Sets the state of a slice from its part of values_N, the values of the chunk.
  void set_feedback(FeedbackKind what, const WireSlice& slice, std::span<const float> values_N);

 private:
  FeedbackEncoder(CompressorOptions options, std::unique_ptr<const Codec> codec)
      : options_(std::move(options)), codec_(std::move(codec)) {}

  GradientCompressor& compressor_of(const WireSlice& slice);
  // Inspects this machine's own gradient of a slice before it is encoded or added to others.
  void note_gradient(const WireSlice& slice, std::span<const float> gradient_N);
  [[nodiscard]] bool begins_reduction(const WireSlice& slice) const;

  using SliceKey = std::pair<ReducePhase, std::size_t>;  // the phase and the first value

  const CompressorOptions options_;
  const std::unique_ptr<const Codec> codec_;
  // A rank encodes the same slices in every step.
  std::map<SliceKey, std::unique_ptr<GradientCompressor>> compressors_;
  // For the current step: the compressors' state before it, stored while every gradient in it is
  // zero. In other steps the first slice ends this, so it costs neither time nor memory.
  bool all_zero_ = true;
  std::map<SliceKey, GradientCompressor::State> before_;
};

}  // namespace motley
