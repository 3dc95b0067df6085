// FeedbackEncoder: sums of gradients compressed with error feedback on their way between machines.
// Each slice that this rank encodes has a GradientCompressor of its own, which keeps what its
// messages left out and adds it to the next step's. One encoder serves one chunk.
//
// With momentum (CompressorOptions) each machine's own gradient becomes a push before it is summed
// with others: where it is encoded, or where the rank that sums for all begins with it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/reduce/slice_encoder.h"
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
  void begin_sum(const WireSlice& slice, std::span<float> values_N) override;
  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override;
  Result<void> decode_add(std::span<const std::byte> wire_B, std::span<float> sum_N) const override;

  // After the vote on a step whose slices were encoded. Of a step that was skipped, what messages
  // left out is dropped: what made it worthless may be in it. Of a step without targets, what is
  // kept becomes what it was before: its gradient was zero, but its messages sent what was owed,
  // and these were not used.
  void end_step(StepEffect effect);

  // Adds what is kept so far to values_N, which are the chunk's. A checkpoint keeps the result: the
  // sum of the residuals over all ranks is what coming steps still owe.
  void add_kept(Kept what, std::span<float> values_N);
  // Sets what is kept of a slice to its part of values_N, which are the chunk's.
  void set_kept(Kept what, const WireSlice& slice, std::span<const float> values_N);

 private:
  FeedbackEncoder(CompressorOptions options, std::unique_ptr<const Codec> codec)
      : options_(std::move(options)), codec_(std::move(codec)) {}

  GradientCompressor& compressor_of(const WireSlice& slice);
  // Looks at this machine's own gradient of a slice before it is encoded or added to others.
  void note_gradient(const WireSlice& slice, std::span<const float> gradient_N);
  [[nodiscard]] bool begins_sum(const WireSlice& slice) const;

  using SliceKey = std::pair<ReducePhase, std::size_t>;  // the phase and the first value

  const CompressorOptions options_;
  const std::unique_ptr<const Codec> codec_;
  // A rank encodes the same slices in every step.
  std::map<SliceKey, std::unique_ptr<GradientCompressor>> compressors_;
  // Of the step under way. What compressors had before it, kept as long as every gradient of it was
  // zero: in other steps the first slice ends that, so that it costs neither time nor memory.
  bool all_zero_ = true;
  std::map<SliceKey, GradientCompressor::State> before_;
};

}  // namespace motley
