#include "pipeline/collectives/feedback_encoder.h"

#include <algorithm>

#include "base/check.h"

namespace motley {

Result<std::unique_ptr<FeedbackEncoder>> FeedbackEncoder::make(const CompressorOptions& options) {
  MOTLEY_ASSIGN(auto codec, make_gradient_codec(options));
  return std::unique_ptr<FeedbackEncoder>(new FeedbackEncoder(options, std::move(codec)));
}

std::size_t FeedbackEncoder::encode(const WireSlice& slice,
                                    std::span<float> values_N,
                                    std::span<std::byte> wire_B) {
  if (slice.phase == ReducePhase::kCrossReduceScatter) note_gradient(slice, values_N);
  GradientCompressor& compressor = compressor_of(slice);
  const std::size_t bytes = begins_reduction(slice)
                                ? compressor.encode_corrected(values_N, slice.step - 1, wire_B)
                                : compressor.encode(values_N, slice.step - 1, wire_B);
  const auto decoded = codec_->decode(wire_B.first(bytes), values_N);
  MOTLEY_CHECK(decoded.ok(), "'{}' cannot read what it wrote: {}", options_.chain,
               decoded.error().what);
  return bytes;
}

void FeedbackEncoder::begin_reduction(const WireSlice& slice, std::span<float> values_N) {
  note_gradient(slice, values_N);
  if (begins_reduction(slice)) compressor_of(slice).apply_momentum(values_N);
}

// Whether encode() gets a slice whose momentum correction was done by begin_reduction().
bool FeedbackEncoder::begins_reduction(const WireSlice& slice) const {
  return options_.momentum > 0 && slice.phase == ReducePhase::kCrossAllGather;
}

Result<void> FeedbackEncoder::decode(std::span<const std::byte> wire_B,
                                     std::span<float> values_N) const {
  return codec_->decode(wire_B, values_N);
}

Result<void> FeedbackEncoder::decode_add(std::span<const std::byte> wire_B,
                                         std::span<float> sum_N) const {
  return codec_->decode_add(wire_B, sum_N);
}

void FeedbackEncoder::note_gradient(const WireSlice& slice, std::span<const float> gradient_N) {
  if (!all_zero_) return;
  all_zero_ = std::ranges::all_of(gradient_N, [](float value) { return value == 0; });
  if (all_zero_) {
    before_.insert_or_assign({slice.phase, slice.values.first}, compressor_of(slice).state());
  } else {
    before_.clear();
  }
}

void FeedbackEncoder::end_step(StepEffect effect) {
  for (auto& [slice, compressor] : compressors_) {
    if (effect == StepEffect::kUpdated) break;
    const auto before = before_.find(slice);
    if (effect == StepEffect::kWithoutTargets && before != before_.end()) {
      compressor->restore(std::move(before->second));
    } else {
      compressor->reset();
    }
  }
  before_.clear();
  all_zero_ = true;
}

void FeedbackEncoder::add_feedback(FeedbackKind what, std::span<float> values_N) {
  for (auto& [slice, compressor] : compressors_) {
    const std::span<const float> kept = compressor->state_array(what);
    for (std::size_t i = 0; i < kept.size(); ++i) values_N[slice.second + i] += kept[i];
  }
}

void FeedbackEncoder::set_feedback(FeedbackKind what,
                                   const WireSlice& slice,
                                   std::span<const float> values_N) {
  const std::span<float> kept = compressor_of(slice).state_array(what);
  std::ranges::copy(values_N.subspan(slice.values.first, kept.size()), kept.begin());
}

GradientCompressor& FeedbackEncoder::compressor_of(const WireSlice& slice) {
  std::unique_ptr<GradientCompressor>& compressor = compressors_[{slice.phase, slice.values.first}];
  if (compressor == nullptr) {
    auto made = GradientCompressor::make(options_, slice.values.count);
    MOTLEY_CHECK(made.ok(), "'{}' was accepted before: {}", options_.chain, made.error().what);
    compressor = std::move(made).value();
  }
  return *compressor;
}

}  // namespace motley
