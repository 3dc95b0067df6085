// The vector kernels of int4.
#include <array>
#include <cmath>
#include <cstring>

#include "compression/formats/block_quantise.h"
#include "compression/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/formats/int4_vector.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "compression/formats/vector_blocks.h"

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {
namespace {

#if MOTLEY_VECTOR_TARGET

// One block of codes, in order.
using Codes = Bytes[kRows / 4];

HWY_INLINE Bytes load_bytes(const std::byte* from) {
  return hn::LoadU(I8(), reinterpret_cast<const std::int8_t*>(from));
}

// Each pair (a, b) of values `stride` apart becomes (b + a, a - b).
template <std::size_t stride>
HWY_INLINE Row crossed(Row own, Row swapped) {
  alignas(64) static constexpr auto kSigns = [] {
    std::array<std::uint32_t, kLanes> signs{};
    for (std::size_t i = 0; i < kLanes; ++i) signs[i] = (i & stride) != 0 ? 0x80000000U : 0;
    return signs;
  }();
  const Row signs = hn::BitCast(F32(), hn::Load(U32(), kSigns.data()));
  return hn::Add(swapped, hn::Xor(own, signs));
}

HWY_INLINE Row rotated_row(Row row) {
  row = crossed<1>(row, hn::Shuffle2301(row));
  row = crossed<2>(row, hn::Shuffle1032(row));
  if constexpr (kLanes >= 8) row = crossed<4>(row, hn::SwapAdjacentBlocks(row));
  if constexpr (kLanes >= 16) row = crossed<8>(row, hn::ConcatLowerUpper(F32(), row, row));
  return row;
}

template <class Vector>
HWY_INLINE void cross(Vector& a, Vector& b) {
  const Vector sum = hn::Add(a, b);
  b = hn::Sub(a, b);
  a = sum;
}

// In the order of strides that the format prescribes. The strides after the first between rows are
// done over every second row, so that with AVX2 the working set fits the registers.
HWY_INLINE void rotate(const Rows& values, Rows& rows) {
  const auto start = [&](std::size_t r) HWY_ATTR {
    const Row signs = hn::Load(F32(), kEncodeSigns.data() + kLanes * r);
    rows[r] = rotated_row(hn::Mul(values[r], signs));
  };
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; r += 2) {
    start(r);
    start(r + 1);
    cross(rows[r], rows[r + 1]);
  }
#pragma GCC unroll 2
  for (std::size_t parity = 0; parity < 2; ++parity) {
#pragma GCC unroll 4
    for (std::size_t step = 2; step < kRows; step *= 2) {
#pragma GCC unroll 16
      for (std::size_t r = parity; r < kRows; r += 2) {
        if ((r & step) == 0) cross(rows[r], rows[r + step]);
      }
    }
  }
}

// The transform of sixteen integers with -b - 1 in place of -b, which is one operation, and its
// result for zeros.
using Sixteen = std::array<std::int8_t, 16>;

constexpr Sixteen crossed_by_complement(Sixteen values) {
  for (std::size_t stride = 1; stride < values.size(); stride *= 2) {
    const Sixteen old = values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int own = (i & stride) != 0 ? ~old[i] : old[i];
      values[i] = static_cast<std::int8_t>(old[i ^ stride] + own);
    }
  }
  return values;
}

constexpr Sixteen sixteen(auto value_at) {
  Sixteen values{};
  int i = 0;
  for (std::int8_t& value : values) value = static_cast<std::int8_t>(value_at(i++));
  return values;
}

template <int stride>
HWY_INLINE Bytes crossed_bytes(Bytes own, Bytes swapped) {
  alignas(16) static constexpr Sixteen kSeconds =
      sixteen([](int i) { return (i & stride) != 0 ? -1 : 0; });
  return hn::Add(swapped, hn::Xor(own, hn::LoadDup128(I8(), kSeconds.data())));
}

// Strides 1, 2, 4 and 8, of codes plus `offset`. A sum of sixteen codes of -8 to 7 fits a byte:
// with plus signs only it is at least -128, and a sum with minus signs has as many as plus signs.
template <int offset>
HWY_INLINE Bytes rotated_sixteens(Bytes codes) {
  alignas(16) static constexpr Sixteen kSwap1 = sixteen([](int i) { return i ^ 1; });
  alignas(16) static constexpr Sixteen kSwap2 = sixteen([](int i) { return i ^ 2; });
  alignas(16) static constexpr Sixteen kExcess =
      crossed_by_complement(sixteen([](int) { return offset; }));
  const auto integers = [](Bytes bytes) HWY_ATTR { return hn::BitCast(I32(), bytes); };
  const auto bytes = [](Integers values) HWY_ATTR { return hn::BitCast(I8(), values); };
  codes = crossed_bytes<1>(codes, hn::TableLookupBytes(codes, hn::LoadDup128(I8(), kSwap1.data())));
  codes = crossed_bytes<2>(codes, hn::TableLookupBytes(codes, hn::LoadDup128(I8(), kSwap2.data())));
  codes = crossed_bytes<4>(codes, bytes(hn::Shuffle2301(integers(codes))));
  codes = crossed_bytes<8>(codes, bytes(hn::Shuffle1032(integers(codes))));
  return hn::Sub(codes, hn::LoadDup128(I8(), kExcess.data()));
}

// Calls use(r, row) with the decoded rows. `codes` are plus `offset`. The same transform as for
// floats, in integers and therefore in any order.
template <int offset, class Use>
HWY_INLINE void decode_codes(const Codes& codes, float scale, const Use& use) {
  constexpr std::size_t kSums = kRows / 2;
  constexpr std::size_t kSumLanes = 2 * kLanes;
  const hn::Half<I8> half_bytes;
  const hn::Half<I16> half_words;
  Words sums[kSums];
#pragma GCC unroll 8
  for (std::size_t q = 0; q < kSums / 2; ++q) {
    const Bytes rotated = rotated_sixteens<offset>(codes[q]);
    sums[2 * q] = hn::PromoteTo(I16(), hn::LowerHalf(half_bytes, rotated));
    sums[2 * q + 1] = hn::PromoteTo(I16(), hn::UpperHalf(half_bytes, rotated));
  }
  if constexpr (kSumLanes == 32) {
#pragma GCC unroll 4
    for (Words& sum : sums) {
      const Words swapped = hn::ConcatLowerUpper(I16(), sum, sum);
      sum = hn::ConcatUpperLower(I16(), hn::Sub(swapped, sum), hn::Add(swapped, sum));
    }
  }
#pragma GCC unroll 3
  for (std::size_t step = kSumLanes >= 16 ? 1 : 16 / kSumLanes; step < kSums; step *= 2) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kSums; ++i) {
      if ((i & step) == 0) cross(sums[i], sums[i + step]);
    }
  }
  const Row factor = hn::Set(F32(), scale);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kSums; ++i) {
    const Words sum = hn::Mul(sums[i], hn::Load(I16(), kDecodeSigns.data() + kSumLanes * i));
    const auto row = [&](auto words) HWY_ATTR {
      return hn::Mul(hn::ConvertTo(F32(), hn::PromoteTo(I32(), words)), factor);
    };
    use(2 * i, row(hn::LowerHalf(half_words, sum)));
    use(2 * i + 1, row(hn::UpperHalf(half_words, sum)));
  }
}

struct Int4 {
  static constexpr std::size_t kBytes = kInt4BlockBytes;
  static constexpr bool kFiniteRests = false;       // codes of the largest floats saturate
  static constexpr std::size_t kParts = kRows / 8;  // of the wire; byte j: codes j and j + 64

  template <class Use>
  static HWY_INLINE bool write(const Rows& values, std::byte* wire_B, const Use& use) {
    Rows rows;
    rotate(values, rows);
    const BlockScale block = block_scale(largest_magnitude_bits(rows), kInt4Largest, kInt4ScaleMax);
    if (std::isnan(block.scale)) return false;
    const Row inverse = hn::Set(F32(), block.inverse);
    Codes codes;
#pragma GCC unroll 8
    for (std::size_t q = 0; q < kRows / 4; ++q) {
      const auto row = [&](std::size_t i)
                           HWY_ATTR { return nearest_integers(hn::Mul(rows[4 * q + i], inverse)); };
      const Bytes all = packed_rows(row(0), row(1), row(2), row(3));
      codes[q] = hn::Max(hn::Min(all, hn::Set(I8(), 7)), hn::Set(I8(), -7));
    }
    std::memcpy(wire_B, &block.scale, kBlockScaleBytes);
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kParts; ++q) {
      const auto high = hn::ShiftLeft<4>(hn::BitCast(I16(), codes[q + kParts]));
      const Bytes low = hn::And(codes[q], hn::Set(I8(), 0x0F));
      store_bytes(hn::Or(low, hn::AndNot(hn::Set(I8(), 0x0F), hn::BitCast(I8(), high))),
                  wire_B + kBlockScaleBytes + 4 * kLanes * q);
    }
    decode_codes<0>(codes, block.scale, use);
    return true;
  }

  template <class Use>
  static HWY_INLINE void read(const std::byte* wire_B, const Use& use) {
    const hn::RebindToUnsigned<I16> words;
    const Bytes low = hn::Set(I8(), 0x0F);
    const Bytes sign = hn::Set(I8(), 8);
    float scale = 0;
    std::memcpy(&scale, wire_B, kBlockScaleBytes);
    Codes codes;  // plus 8
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kParts; ++q) {
      const Bytes bytes = load_bytes(wire_B + kBlockScaleBytes + 4 * kLanes * q);
      const Bytes high = hn::BitCast(I8(), hn::ShiftRight<4>(hn::BitCast(words, bytes)));
      codes[q] = hn::Xor(hn::And(bytes, low), sign);
      codes[q + kParts] = hn::Xor(hn::And(high, low), sign);
    }
    decode_codes<8>(codes, scale, use);
  }

  static const FormatKernels& scalar() {
    return scalar_block_kernels().int4;
  }
};

const FormatKernels& int4_kernels() {
  static constexpr FormatKernels kKernels = kFormat<Int4>;
  return kKernels;
}

#else

const FormatKernels& int4_kernels() {
  return scalar_block_kernels().int4;
}

#endif

}  // namespace
}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace motley {

HWY_EXPORT(int4_kernels);

const FormatKernels& best_int4_kernels() {
  return HWY_DYNAMIC_DISPATCH(int4_kernels)();
}

}  // namespace motley

#endif
