// Sixty-four values at a time, one word of bits; the scalar reference processes the rest. Products
// and sums are not contracted: this compiler option is set for all of Motley.
#include <cstring>
#include <type_traits>

#include "compression/kernels/prefetch.h"
#include "compression/kernels/select_kernels.h"
#include "compression/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/kernels/select_kernels_vector.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "compression/kernels/vector_rows.h"

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {
namespace {

#if MOTLEY_VECTOR_TARGET

using Mask = hn::Mask<I32>;

constexpr std::size_t kWordValues = 64;

// For slices that are updated, the best of 1 and 2 KiB with both AVX2 and AVX-512.
constexpr std::uintptr_t kSumAheadBytes = 2048;

HWY_INLINE std::size_t whole_words(std::size_t count) {
  return count - count % kWordValues;
}

template <class Bits, class Lanes>
HWY_INLINE std::uint64_t bits_of(Lanes lanes, hn::Mask<Lanes> mask) {
  std::uint8_t bytes[8];  // StoreMaskBits() requires that many
  hn::StoreMaskBits(lanes, mask, bytes);
  Bits bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

// One bit for each lane of four rows, in order.
HWY_INLINE std::uint64_t bits_of(Mask a, Mask b, Mask c, Mask d) {
  if constexpr (kLanes == 16) {  // AVX-512, whose masks are bits
    const auto row = [](Mask mask) HWY_ATTR { return bits_of<std::uint16_t>(I32(), mask); };
    return row(a) | row(b) << 16 | row(c) << 32 | row(d) << 48;
  } else {
    using Bits = std::conditional_t<kLanes == 8, std::uint32_t, std::uint16_t>;
    const auto row = [](Mask mask) HWY_ATTR { return hn::VecFromMask(I32(), mask); };
    return bits_of<Bits>(I8(), hn::MaskFromVec(packed_rows(row(a), row(b), row(c), row(d))));
  }
}

// Marks `count` values in whole words; row_at(i) returns those from i on, computed from the slices.
template <class RowAt, class... Slices>
HWY_INLINE void mark_rows(std::size_t count,
                          std::uint32_t threshold_bits,
                          std::uint64_t* words,
                          std::uintptr_t ahead_bytes,
                          const RowAt& row_at,
                          Slices... slices) {
  const Integers below = hn::Set(I32(), static_cast<std::int32_t>(threshold_bits - 1));
  for (std::size_t first = 0; first < count; first += kWordValues) {
    std::uint64_t word = 0;
    (prefetch_ahead(slices + first, ahead_bytes, kWordValues * sizeof(float)), ...);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kWordValues; i += 4 * kLanes) {
      const auto large = [&](std::size_t row) HWY_ATTR {
        return hn::Gt(magnitudes(row_at(first + i + row * kLanes)), below);
      };
      const Mask a = large(0);  // in order, unlike arguments
      const Mask b = large(1);
      const Mask c = large(2);
      const Mask d = large(3);
      word |= bits_of(a, b, c, d) << i;
    }
    *words++ = word;
  }
}

void mark(std::span<const float> values_N, std::uint32_t threshold_bits, std::uint64_t* words) {
  const std::size_t whole = whole_words(values_N.size());
  const float* values = values_N.data();
  const auto row_at = [=](std::size_t i) HWY_ATTR { return load_row(values + i); };
  mark_rows(whole, threshold_bits, words, kReadAheadBytes, row_at, values);
  scalar_select_kernels().mark(values_N.subspan(whole), threshold_bits,
                               words + whole / kWordValues);
}

void add_and_mark(std::span<const float> gradient_N,
                  std::span<float> residual_N,
                  std::uint32_t threshold_bits,
                  std::uint64_t* words) {
  const std::size_t whole = whole_words(residual_N.size());
  const float* gradient = gradient_N.data();
  float* residual = residual_N.data();
  const auto row_at = [=](std::size_t i) HWY_ATTR {
    const Row sum = hn::Add(load_row(residual + i), load_row(gradient + i));
    store_row(sum, residual + i);
    return sum;
  };
  mark_rows(whole, threshold_bits, words, kSumAheadBytes, row_at, gradient, residual);
  scalar_select_kernels().add_and_mark(gradient_N.subspan(whole), residual_N.subspan(whole),
                                       threshold_bits, words + whole / kWordValues);
}

void gather_and_mark(std::span<const float> gradient_N,
                     float momentum,
                     std::span<float> velocity_N,
                     std::span<float> residual_N,
                     std::uint32_t threshold_bits,
                     std::uint64_t* words) {
  const std::size_t whole = whole_words(residual_N.size());
  const float* gradient = gradient_N.data();
  float* velocity = velocity_N.data();
  float* residual = residual_N.data();
  const auto row_at = [=](std::size_t i) HWY_ATTR {
    const Row kept = hn::Mul(hn::Set(F32(), momentum), load_row(velocity + i));
    const Row faster = hn::Add(kept, load_row(gradient + i));
    store_row(faster, velocity + i);
    const Row sum = hn::Add(load_row(residual + i), faster);
    store_row(sum, residual + i);
    return sum;
  };
  mark_rows(whole, threshold_bits, words, kSumAheadBytes, row_at, gradient, velocity, residual);
  scalar_select_kernels().gather_and_mark(gradient_N.subspan(whole), momentum,
                                          velocity_N.subspan(whole), residual_N.subspan(whole),
                                          threshold_bits, words + whole / kWordValues);
}

const SelectKernels& select_kernels() {
  static constexpr SelectKernels kKernels = {mark, add_and_mark, gather_and_mark};
  return kKernels;
}

#else

const SelectKernels& select_kernels() {
  return scalar_select_kernels();
}

#endif

}  // namespace
}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace motley {

HWY_EXPORT(select_kernels);

const SelectKernels& best_select_kernels() {
  return HWY_DYNAMIC_DISPATCH(select_kernels)();
}

}  // namespace motley

#endif
