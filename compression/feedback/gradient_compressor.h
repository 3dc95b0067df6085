// The sending side of one slice of a gradient over many steps: a codec with error feedback.
//
// A lossy message leaves something out. What it left out, the residual, is added to the next step's
// gradient before that is sent, so that in the sum over the steps nothing is lost, only delayed:
//
//   sum of the gradients = sum of what the messages mean + residual
//
// up to the rounding of one sum and one difference a step. Each encode() goes over the slice once
// (compression/codec/format_kernels.h), or with topk as compression/sparse/sparse_encoder.h says. A
// step that every rank skips should be followed by reset(): its gradient is partly in the residual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compression/codec/codec.h"
#include "compression/codec_chain.h"
#include "compression/formats/zstd_codec.h"
#include "compression/sparse/sparse_encoder.h"

namespace motley {

// All of them change the result.
struct CompressorOptions {
  std::string chain = "none";

  // Without it what a message leaves out is lost, and the sum of the messages is biased.
  bool error_feedback = true;

  // With topk and error feedback only, 0 to below 1. The sender then applies the optimizer's
  // momentum itself, before it selects: a value that is sent late brings the pushes of all the
  // steps that it waited. The optimizer should have none. Messages then follow from gradients,
  // residual and velocity alone, so that these are all the state there is.
  float momentum = 0;

  // With topk only. So many steps begin denser: with 1/4 of the values, then 1/16 and so on down to
  // the density of the chain, each for as many steps.
  std::int64_t warmup_steps = 0;
};

// What a compressor keeps from step to step.
enum class Kept : std::uint8_t { kResidual, kVelocity };

// Whose, where several compressors of the same values share a sum: of one, or of all together.
enum class KeptBy : std::uint8_t { kSelf, kAll };

class GradientCompressor {
 public:
  // For slices of `count` values. kConfig for what is not a chain, and for momentum or warm-up
  // where they do not belong.
  static Result<std::unique_ptr<GradientCompressor>> make(const CompressorOptions& options,
                                                          std::size_t count);

  // The codec that reads the messages.
  [[nodiscard]] const Codec& codec() const { return *codec_; }

  // The upper bound of a message of any step.
  [[nodiscard]] std::size_t bytes_max() const { return codec_->bytes_max(count_); }

  // The share of values that a message of that step holds, nearly; 1 without topk.
  [[nodiscard]] double density(std::int64_t step) const;

  // Writes the message of that step and returns its bytes; steps count from 0. What is not finite
  // does not come back as if it were, and leaves no trace in the residual. REQUIRES:
  // gradient_N.size() is the count, wire_B.size() >= bytes_max().
  std::size_t encode(std::span<const float> gradient_N,
                     std::int64_t step,
                     std::span<std::byte> wire_B);

  // Applies the momentum to a gradient whose push is added to others before it is sent: leaves the
  // push in gradient_N. Then encode_pushes() sends the sum of them; where it sends a value, this
  // push's velocity starts anew. REQUIRES: momentum > 0, gradient_N.size() is the count.
  void push(std::span<float> gradient_N);
  // As encode(), of a sum of pushes.
  std::size_t encode_pushes(std::span<const float> pushes_N,
                            std::int64_t step,
                            std::span<std::byte> wire_B);

  // What the messages left out, and the momentum that is not yet sent. Empty spans where the
  // options need none.
  [[nodiscard]] std::span<const float> residual() const { return residual_N_; }

  [[nodiscard]] std::span<const float> velocity() const { return velocity_N_; }

  // The same, also to go on from what another compressor of the same options had.
  [[nodiscard]] std::span<float> kept(Kept what) {
    return what == Kept::kResidual ? residual_N_ : velocity_N_;
  }

  // Forgets the state, as of a sender that has sent nothing yet.
  void reset();

  // All that messages to come follow from, but for the options.
  struct State {
    std::vector<float> residual_N;
    std::vector<float> velocity_N;
    std::optional<SparseEncoder> sparse;
  };

  [[nodiscard]] State state() const { return {residual_N_, velocity_N_, sparse_}; }

  // REQUIRES: the state of a compressor of the same options and count.
  void restore(State state);

 private:
  GradientCompressor(const CompressorOptions& options, const CodecChain& chain, std::size_t count);

  // The upper bound of a message of that step before it is packed.
  [[nodiscard]] std::size_t unpacked_bytes_max(std::int64_t step) const;

  // `is_gathered`: as Feedback's.
  std::size_t encode(std::span<const float> values_N,
                     std::int64_t step,
                     bool is_gathered,
                     std::span<std::byte> wire_B);
  std::size_t encode_fed_back(std::span<const float> values_N,
                              std::int64_t step,
                              bool is_gathered,
                              std::span<std::byte> wire_B);

  CompressorOptions options_;
  CodecChain chain_;
  std::size_t count_ = 0;
  int warmup_stages_ = 0;  // densities above the chain's
  std::unique_ptr<const Codec> codec_;
  std::vector<float> residual_N_;
  std::vector<float> velocity_N_;
  std::optional<SparseEncoder> sparse_;
  std::optional<ZstdPacker> packer_;
  std::vector<std::byte> unpacked_B_;
};

// Makes the codec that reads the messages of such a compressor, for ranks that only receive them.
// Fails as make().
[[nodiscard]] Result<std::unique_ptr<const Codec>> make_gradient_codec(
    const CompressorOptions& options);

}  // namespace motley
