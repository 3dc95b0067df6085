#include "compression/sparse/sparse_encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "compression/sparse/sparse_block.h"

namespace motley {
namespace {

std::size_t block_count(std::size_t count) {
  return (count + kSparseBlockValues - 1) / kSparseBlockValues;
}

Feedback feedback_of_block(const Feedback& feedback, std::size_t first, std::size_t count) {
  Feedback block = feedback;
  if (!feedback.residual_N.empty()) block.residual_N = feedback.residual_N.subspan(first, count);
  if (!feedback.velocity_N.empty()) block.velocity_N = feedback.velocity_N.subspan(first, count);
  return block;
}

// The span of the marked values, after the addition.
std::span<const float> marked_values(std::span<const float> values_N, const Feedback& feedback) {
  return feedback.residual_N.empty() ? values_N : feedback.residual_N;
}

// Adds the values to the feedback state and marks the large ones.
void add_and_mark(const SelectKernels& kernels,
                  std::span<const float> values_N,
                  const Feedback& feedback,
                  std::uint32_t threshold_bits,
                  std::uint64_t* words) {
  if (feedback.residual_N.empty()) {
    kernels.mark(values_N, threshold_bits, words);
  } else if (!feedback.gathers()) {
    kernels.add_and_mark(values_N, feedback.residual_N, threshold_bits, words);
  } else {
    kernels.gather_and_mark(values_N, feedback.momentum, feedback.velocity_N, feedback.residual_N,
                            threshold_bits, words);
  }
}

std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

// Copies the marks of the block that begins at `first` from those of its slice.
void copy_marks(std::span<const std::uint64_t> slice_marks,
                std::size_t first,
                SelectedValues& kept) {
  const auto marks = slice_marks.subspan(first / 64);
  std::ranges::copy(marks.first(std::min(marks.size(), kMaskWords)), kept.mask.begin());
  std::fill(kept.mask.begin() + static_cast<std::ptrdiff_t>(std::min(marks.size(), kMaskWords)),
            kept.mask.end(), 0);
}

// Retains only the values that reach the threshold. Branch-free, because about half of them do.
void keep_from(std::uint32_t threshold_bits, SelectedValues& kept) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kept.count; ++i) {
    const std::uint16_t place = kept.places[i];
    const float value = kept.values[i];
    const bool large = magnitude_bits(value) >= threshold_bits;
    kept.places[count] = place;
    kept.values[count] = value;
    count += large ? 1 : 0;
    kept.mask[place / 64] ^= std::uint64_t{!large} << place % 64;
  }
  kept.count = count;
}

void fetch_selected(std::span<const float> values_N, SelectedValues& kept) {
  list_positions(kept);
  kept.finite = true;
  for (std::size_t i = 0; i < kept.count; ++i) {
    kept.values[i] = values_N[kept.places[i]];
    kept.finite &= std::isfinite(kept.values[i]);
  }
}

void drop_not_finite(const SelectedValues& kept, const Feedback& block) {
  if (block.residual_N.empty()) return;
  for (const std::uint16_t place : kept.selected_positions()) {
    if (std::isfinite(block.residual_N[place])) continue;
    block.residual_N[place] = 0;
    if (!block.velocity_N.empty()) block.velocity_N[place] = 0;
  }
}

}  // namespace

// A position takes a byte as a gap, and less in a mask.
std::size_t sparse_bytes_max(std::size_t count, double density, const FixedSizeFormat& format) {
  const std::size_t kept = selected_max(count, density);
  return kSparseHeaderBytes + block_count(count) * kSparseBlockBytesMore + kept +
         format.bytes(kept);
}

Selection SparseEncoder::select(std::span<const float> values_N,
                                double density,
                                const Feedback& feedback) {
  const std::size_t count = values_N.size();
  const float* values = values_N.data();
  const float* residual = feedback.residual_N.data();
  const float* velocity = feedback.velocity_N.data();
  if (feedback.residual_N.empty()) {
    return threshold_.select(count, density, [=](std::size_t i) { return values[i]; });
  }
  if (!feedback.gathers()) {
    return threshold_.select(count, density,
                             [=](std::size_t i) { return residual[i] + values[i]; });
  }
  return threshold_.select(count, density, [=, momentum = feedback.momentum](std::size_t i) {
    return residual[i] + (momentum * velocity[i] + values[i]);
  });
}

// Fills candidates_ from the marks.
void SparseEncoder::list_candidates(std::span<const float> marked_N) {
  SelectedValues kept;
  candidates_.clear();
  for (std::size_t first = 0; first < marked_N.size(); first += kSparseBlockValues) {
    copy_marks(marks_, first, kept);
    list_positions(kept);
    const std::size_t before = candidates_.size();
    candidates_.resize(before + kept.count);
    for (std::size_t i = 0; i < kept.count; ++i) {
      candidates_[before + i] = magnitude_bits(marked_N[first + kept.places[i]]);
    }
  }
}

// Adds a whole slice to its feedback state, and marks a superset of the values that reach its exact
// threshold.
Selection SparseEncoder::mark_exactly(std::span<const float> values_N,
                                      double density,
                                      const Feedback& feedback) {
  const std::size_t wanted = selection_target(values_N.size(), density);
  const auto marked_N = marked_values(values_N, feedback);
  marks_.resize((values_N.size() + 63) / 64);
  add_and_mark(kernels_, values_N, feedback, threshold_.last_bound(), marks_.data());
  list_candidates(marked_N);
  if (!SparseThreshold::enough(candidates_.size(), wanted)) {
    kernels_.mark(marked_N, threshold_.sampled_bound(marked_N, wanted), marks_.data());
    list_candidates(marked_N);
  }
  if (candidates_.size() < wanted) {
    kernels_.mark(marked_N, 1, marks_.data());
    list_candidates(marked_N);
  }
  return threshold_.select_among(candidates_, values_N.size(), density);
}

// values_B: the selected values as encoded.
void SparseEncoder::take_sent(SelectedValues& kept,
                              const std::byte* values_B,
                              const Feedback& block) const {
  if (block.residual_N.empty()) return;
  format_.decode(values_B, kept.selected_values());
  for (std::size_t i = 0; i < kept.count; ++i) {
    block.residual_N[kept.places[i]] -= kept.values[i];
  }
  if (block.velocity_N.empty()) return;
  for (const std::uint16_t place : kept.selected_positions()) block.velocity_N[place] = 0;
}

std::size_t SparseEncoder::encode(std::span<const float> values_N,
                                  double density,
                                  const Feedback& feedback,
                                  std::span<std::byte> wire_B) {
  const std::size_t count = values_N.size();
  MOTLEY_CHECK(0 < density && density <= 1, "density {}", density);
  MOTLEY_CHECK(wire_B.size() >= sparse_bytes_max(count, density, format_), "buffer: {} of {} bytes",
               wire_B.size(), sparse_bytes_max(count, density, format_));
  const bool exact = SparseThreshold::is_exact(count, density);
  const Selection selection =
      exact ? mark_exactly(values_N, density, feedback) : select(values_N, density, feedback);
  const auto header = static_cast<std::uint64_t>(count);
  std::memcpy(wire_B.data(), &header, kSparseHeaderBytes);
  std::size_t at = kSparseHeaderBytes;
  std::size_t selected = 0;
  std::size_t left = selection.selected_max;
  SelectedValues kept;
  for (std::size_t first = 0; first < count; first += kSparseBlockValues) {
    const auto block_N = values_N.subspan(first, std::min(count - first, kSparseBlockValues));
    const Feedback block = feedback_of_block(feedback, first, block_N.size());
    if (exact) {
      copy_marks(marks_, first, kept);
    } else {
      if (block_N.size() < kSparseBlockValues) kept.mask.fill(0);
      add_and_mark(kernels_, block_N, block, selection.threshold_bits, kept.mask.data());
    }
    fetch_selected(marked_values(block_N, block), kept);
    if (exact) keep_from(selection.threshold_bits, kept);
    if (!kept.finite) {
      drop_not_finite(kept, block);
      kept.count = 0;
    }
    selected += kept.count;
    if (kept.count > left) select_first(kept, left);
    left -= kept.count;
    at += write_sparse_block(kept, block_N.size(), format_, wire_B.data() + at);
    take_sent(kept, wire_B.data() + at - format_.bytes(kept.count), block);
  }
  threshold_.adapt(selected, selection_target(count, density));
  return at;
}

}  // namespace motley
