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

  // Drops what was left out so far.
  void forget();

  // Adds what is kept so far to values_N, which are the chunk's. A checkpoint keeps the result: the
  // sum of the residuals over all ranks is what coming steps still owe.
  void add_kept(Kept what, std::span<float> values_N);
  // Sets what is kept of a slice to its part of values_N, which are the chunk's.
  void set_kept(Kept what, const WireSlice& slice, std::span<const float> values_N);

 private:
  FeedbackEncoder(CompressorOptions options, std::unique_ptr<const Codec> codec)
      : options_(std::move(options)), codec_(std::move(codec)) {}

  GradientCompressor& compressor_of(const WireSlice& slice);
  [[nodiscard]] bool begins_sum(const WireSlice& slice) const;

  const CompressorOptions options_;
  const std::unique_ptr<const Codec> codec_;
  // The key is the phase and the first value; a rank encodes the same slices in every step.
  std::map<std::pair<ReducePhase, std::size_t>, std::unique_ptr<GradientCompressor>> compressors_;
};

}  // namespace motley
