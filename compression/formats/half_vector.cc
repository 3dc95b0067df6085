// A cache line of values at a time; the scalar reference processes the rest.
#include "compression/formats/half.h"
#include "compression/kernels/prefetch.h"
#include "compression/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/formats/half_vector.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "compression/kernels/vector_rows.h"

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {
namespace {

#if MOTLEY_VECTOR_TARGET

using U16 = hn::Rebind<std::uint16_t, F32>;
using Halves = hn::Vec<U16>;

HWY_INLINE Integers with_sign_of(Row row, Integers magnitude) {
  return hn::Or(magnitude, hn::AndNot(hn::Set(I32(), 0x7FFFFFFF), hn::BitCast(I32(), row)));
}

struct Fp16 {
  static HWY_INLINE Halves narrow(Row row) {
    const Integers magnitude = magnitudes(row);
    const Integers largest = hn::BitCast(I32(), hn::Set(F32(), 65504.0F));
    const Integers kept = hn::IfThenElse(are_finite(row), hn::Min(magnitude, largest), magnitude);
    const hn::Rebind<hwy::float16_t, F32> halves;
    return hn::BitCast(U16(), hn::DemoteTo(halves, hn::BitCast(F32(), with_sign_of(row, kept))));
  }

  static HWY_INLINE Row widen(Halves halves) {
    return hn::PromoteTo(F32(), hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), halves));
  }

  static const FormatKernels& scalar() { return scalar_half_kernels().fp16; }
};

struct Bf16 {
  // In the upper sixteen bits of each lane.
  static HWY_INLINE Halves narrow(Row row) {
    const Integers magnitude = magnitudes(row);
    const Integers odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(I32(), 1));
    const Integers below_overflow = hn::Min(magnitude, hn::Set(I32(), 0x7F7F7FFF));
    const Integers finite = hn::Add(hn::Add(below_overflow, hn::Set(I32(), 0x7FFF)), odd);
    // Not finite: truncated, and NaNs made quiet.
    const auto nan = hn::Gt(magnitude, hn::Set(I32(), 0x7F800000));
    const Integers other = hn::Or(magnitude, hn::IfThenElseZero(nan, hn::Set(I32(), 0x400000)));
    const Integers half = with_sign_of(row, hn::IfThenElse(are_finite(row), finite, other));
    return hn::TruncateTo(U16(), hn::ShiftRight<16>(hn::BitCast(U32(), half)));
  }

  static HWY_INLINE Row widen(Halves halves) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), halves)));
  }

  static const FormatKernels& scalar() { return scalar_half_kernels().bf16; }
};

HWY_INLINE Halves load_halves(const std::byte* from) {
  return hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(from));
}

HWY_INLINE void store_halves(Halves halves, std::byte* to) {
  hn::StoreU(halves, U16(), reinterpret_cast<std::uint16_t*>(to));
}

// Calls ahead(i) for each line of values and row(i) for each of its rows. Returns the number of
// values in whole lines.
template <class Ahead, class RowAt>
HWY_INLINE std::size_t for_lines(std::size_t count, const Ahead& ahead, const RowAt& row) {
  const std::size_t whole = count - count % kCacheLineFloats;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += kCacheLineFloats) {
    ahead(i);
#pragma GCC unroll 4
    for (std::size_t at = 0; at < kCacheLineFloats; at += kLanes) row(i + at);
  }
  return whole;
}

template <class Half>
void encode(std::span<const float> values_N, std::byte* wire_B) {
  const float* values = values_N.data();
  const std::size_t whole = for_lines(
      values_N.size(),
      [=](std::size_t i) { prefetch_ahead(values + i, kReadAheadBytes, kCacheLineBytes); },
      [=](std::size_t i)
          HWY_ATTR { store_halves(Half::narrow(load_row(values + i)), wire_B + 2 * i); });
  Half::scalar().encode(values_N.subspan(whole), wire_B + 2 * whole);
}

template <class Half>
void decode(const std::byte* wire_B, std::span<float> values_N) {
  float* values = values_N.data();
  const std::size_t whole = for_lines(
      values_N.size(), [](std::size_t) {},
      [=](std::size_t i)
          HWY_ATTR { store_row(Half::widen(load_halves(wire_B + 2 * i)), values + i); });
  Half::scalar().decode(wire_B + 2 * whole, values_N.subspan(whole));
}

template <class Half>
void decode_add(const std::byte* wire_B, std::span<float> sum_N) {
  float* sum = sum_N.data();
  const std::size_t whole = for_lines(
      sum_N.size(),
      [=](std::size_t i) { prefetch_ahead(sum + i, kUpdateAheadBytes, kCacheLineBytes); },
      [=](std::size_t i) HWY_ATTR {
        const Row row = Half::widen(load_halves(wire_B + 2 * i));
        store_row(hn::Add(load_row(sum + i), row), sum + i);
      });
  Half::scalar().decode_add(wire_B + 2 * whole, sum_N.subspan(whole));
}

template <class Half>
void encode_feedback(std::span<const float> gradient_N,
                     std::span<float> residual_N,
                     std::byte* wire_B) {
  const float* gradient = gradient_N.data();
  float* residual = residual_N.data();
  const std::size_t whole = for_lines(
      residual_N.size(),
      [=](std::size_t i) {
        prefetch_ahead(gradient + i, kUpdateAheadBytes, kCacheLineBytes);
        prefetch_ahead(residual + i, kUpdateAheadBytes, kCacheLineBytes);
      },
      [=](std::size_t i) HWY_ATTR {
        const Row sum = hn::Add(load_row(residual + i), load_row(gradient + i));
        const Halves halves = Half::narrow(sum);
        store_halves(halves, wire_B + 2 * i);
        // It is finite where the sum is.
        const Row rest = hn::Sub(sum, Half::widen(halves));
        store_row(finite_or_zero(rest, are_finite(sum)), residual + i);
      });
  Half::scalar().encode_feedback(gradient_N.subspan(whole), residual_N.subspan(whole),
                                 wire_B + 2 * whole);
}

template <class Half>
constexpr FormatKernels kFormat = {encode<Half>, decode<Half>, decode_add<Half>,
                                   encode_feedback<Half>};

const HalfKernels& half_kernels() {
  static constexpr HalfKernels kKernels = {kFormat<Fp16>, kFormat<Bf16>};
  return kKernels;
}

#else

const HalfKernels& half_kernels() {
  return scalar_half_kernels();
}

#endif

}  // namespace
}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace motley {

HWY_EXPORT(half_kernels);

const HalfKernels& best_half_kernels() {
  return HWY_DYNAMIC_DISPATCH(half_kernels)();
}

}  // namespace motley

#endif
