// Rows of fp32 values, as wide as the vectors of the target, for the sources of vector kernels.
// They include it after foreach_target.h, which includes them once per target.
#include "compression/kernels/vector_targets.h"
// After vector_targets.h.
#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>

// An include guard for each target.
#if defined(MOTLEY_VECTOR_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef MOTLEY_VECTOR_ROWS
#undef MOTLEY_VECTOR_ROWS
#else
#define MOTLEY_VECTOR_ROWS
#endif

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {

#if MOTLEY_VECTOR_TARGET

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using I16 = hn::Repartition<std::int16_t, F32>;
using I8 = hn::Repartition<std::int8_t, F32>;

using Row = hn::Vec<F32>;
using Integers = hn::Vec<I32>;
using Words = hn::Vec<I16>;
using Bytes = hn::Vec<I8>;  // of four rows

constexpr std::size_t kLanes = hn::MaxLanes(F32());

HWY_INLINE Row load_row(const float* from) {
  return hn::LoadU(F32(), from);
}

HWY_INLINE void store_row(Row row, float* to) {
  hn::StoreU(row, F32(), to);
}

// The bits of the magnitudes. As integers they are ordered: finite ones by size, then infinity,
// then NaN.
HWY_INLINE Integers magnitudes(Row row) {
  return hn::And(hn::BitCast(I32(), row), hn::Set(I32(), 0x7FFFFFFF));
}

HWY_INLINE hn::Mask<I32> are_finite(Row row) {
  return hn::Gt(hn::Set(I32(), 0x7F800000), magnitudes(row));
}

HWY_INLINE Row finite_or_zero(Row row, hn::Mask<I32> finite) {
  return hn::IfThenElseZero(hn::RebindMask(F32(), finite), row);
}

// Sixteen bits to eight, within each 128 bits. Highway 1.0 has ReorderDemote2To() only to sixteen.
HWY_INLINE Bytes packed_words(Words low, Words high) {
#if HWY_TARGET == HWY_AVX3
  return Bytes{_mm512_packs_epi16(low.raw, high.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Bytes{_mm256_packs_epi16(low.raw, high.raw)};
#else
  const hn::Half<I8> half;
  return hn::Combine(I8(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#endif
}

// Four rows of integers of -128 to 127 as bytes, in order.
HWY_INLINE Bytes packed_rows(Integers a, Integers b, Integers c, Integers d) {
  const Bytes bytes =
      packed_words(hn::ReorderDemote2To(I16(), a, b), hn::ReorderDemote2To(I16(), c, d));
  if constexpr (kLanes == 4) return bytes;
  // Part k of 128 bits number b has integers 4 b to 4 b + 3 of row k.
  alignas(64) static constexpr auto kInOrder = [] {
    constexpr std::size_t kBlocks = kLanes / 4;
    std::array<std::int32_t, kLanes> from{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      from[i] = static_cast<std::int32_t>(i % kBlocks * 4 + i / kBlocks);
    }
    return from;
  }();
  return hn::BitCast(I8(), hn::TableLookupLanes(hn::BitCast(I32(), bytes),
                                                hn::SetTableIndices(I32(), kInOrder.data())));
}

#endif

}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
