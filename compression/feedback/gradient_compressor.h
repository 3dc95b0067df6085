// The sending side of one slice of a gradient over many steps: a codec with error feedback.
//
// A lossy message differs from its values. The difference, the residual, is added to the next
// step's gradient before that is sent. So over the steps nothing is lost, only delayed:
//
//   sum of the gradients = sum of the decoded messages + residual
//
// up to the rounding of one sum and one difference per step. Each encode() reads the slice once
// (compression/codec/format_kernels.h; topk: compression/sparse/sparse_encoder.h). After a step
// that every rank skips the caller should reset() the state: the residual contains a part of its
// gradient.
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

// All options change the result.
struct CompressorOptions {
  std::string chain = "none";

  // Without it the omitted part of each message is lost, and the sum of the messages is biased.
  bool error_feedback = true;

  // With topk and error feedback only, from 0 to below 1: momentum correction. The sender applies
  // the optimizer's momentum before the selection, so that a delayed value includes the
  // momentum-corrected gradients of all steps since it was last sent. The optimizer should then
  // have no momentum. Messages depend only on gradients, residual and velocity, which are the
  // complete state.
  float momentum = 0;

  // With topk only. The first warmup_steps steps use higher densities: 1/4, then 1/16 and so on
  // down to the chain's density, each for an equal number of steps.
  std::int64_t warmup_steps = 0;
};

// The state that a compressor retains between steps.
enum class FeedbackKind : std::uint8_t { kResidual, kVelocity };

// Which part of the state, where several compressors of the same values take part in one
// all-reduce: this one's, or the total of all.
enum class FeedbackScope : std::uint8_t { kSelf, kAll };

class GradientCompressor {
 public:
  // For slices of `count` values. kConfig if the text is not a chain, or if it does not support
  // momentum or warm-up.
  static Result<std::unique_ptr<GradientCompressor>> make(const CompressorOptions& options,
                                                          std::size_t count);

  // The codec that decodes the messages.
  [[nodiscard]] const Codec& codec() const { return *codec_; }

  // An upper bound of the message size of any step.
  [[nodiscard]] std::size_t bytes_max() const { return codec_->bytes_max(count_); }

  // The approximate share of values in a message of that step; 1 without topk.
  [[nodiscard]] double density(std::int64_t step) const;

  // Writes the message of that step and returns its bytes; steps count from 0. A value that is not
  // finite never decodes to a finite one, and leaves no trace in the residual. REQUIRES:
  // gradient_N.size() is the count, wire_B.size() >= bytes_max().
  std::size_t encode(std::span<const float> gradient_N,
                     std::int64_t step,
                     std::span<std::byte> wire_B);

  // Applies momentum correction in place to a gradient that is added to those of other compressors
  // before sending. encode_corrected() then sends the sum; where it sends a value, this
  // compressor's velocity is reset. REQUIRES: momentum > 0, gradient_N.size() is the count.
  void apply_momentum(std::span<float> gradient_N);
  // As encode(), for a sum of momentum-corrected gradients.
  std::size_t encode_corrected(std::span<const float> corrected_N,
                               std::int64_t step,
                               std::span<std::byte> wire_B);

  // The error-feedback residual, and the velocity. Empty spans if the options need none.
  [[nodiscard]] std::span<const float> residual() const { return residual_N_; }

  [[nodiscard]] std::span<const float> velocity() const { return velocity_N_; }

  // The same by kind; writable, to restore the state of another compressor with the same options.
  [[nodiscard]] std::span<float> state_array(FeedbackKind what) {
    return what == FeedbackKind::kResidual ? residual_N_ : velocity_N_;
  }

  // Resets the state to that of a sender that has sent nothing.
  void reset();

  // The complete state on which later messages depend, except for the options.
  struct State {
    std::vector<float> residual_N;
    std::vector<float> velocity_N;
    std::optional<SparseEncoder> sparse;
  };

  [[nodiscard]] State state() const { return {residual_N_, velocity_N_, sparse_}; }

  // REQUIRES: the state of a compressor with the same options and count.
  void restore(State state);

 private:
  GradientCompressor(const CompressorOptions& options, const CodecChain& chain, std::size_t count);

  // An upper bound of the message size of that step before compression by zstd.
  [[nodiscard]] std::size_t unpacked_bytes_max(std::int64_t step) const;

  // `is_gathered`: as in Feedback.
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

// Makes the codec that decodes the messages of such a compressor, for ranks that only receive them.
// Fails as make().
[[nodiscard]] Result<std::unique_ptr<const Codec>> make_gradient_codec(
    const CompressorOptions& options);

}  // namespace motley
