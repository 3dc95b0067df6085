// Common parts of the vector kernels of the block formats: blocks of rows, and loops over whole
// blocks. The scalar reference processes the partial block at the end, and blocks with an infinity
// or a NaN. The sources of these kernels include it after foreach_target.h, which includes them
// once per target.
#include <cstddef>
#include <cstdint>
#include <span>

#include "compression/formats/block_quantise.h"
#include "compression/formats/hadamard.h"
#include "compression/kernels/prefetch.h"
#include "compression/kernels/vector_rows.h"

// An include guard for each target.
#if defined(MOTLEY_VECTOR_BLOCKS) == defined(HWY_TARGET_TOGGLE)
#ifdef MOTLEY_VECTOR_BLOCKS
#undef MOTLEY_VECTOR_BLOCKS
#else
#define MOTLEY_VECTOR_BLOCKS
#endif

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {

#if MOTLEY_VECTOR_TARGET

constexpr std::size_t kRows = kBlockValues / kLanes;
constexpr std::uintptr_t kRowsBytes = kBlockValues * sizeof(float);

// One block: row r has the values r kLanes to (r + 1) kLanes - 1. An array and no class, since GCC
// compiles implicit constructors without the target's instructions.
using Rows = Row[kRows];

HWY_INLINE void store_bytes(Bytes bytes, std::byte* to) {
  hn::StoreU(bytes, I8(), reinterpret_cast<std::int8_t*>(to));
}

HWY_INLINE void load_rows(const float* from, Rows& rows) {
#pragma GCC unroll 32
  for (std::size_t r = 0; r < kRows; ++r) rows[r] = load_row(from + kLanes * r);
}

HWY_INLINE std::uint32_t largest_magnitude_bits(const Rows& rows) {
  Integers largest = hn::Zero(I32());
#pragma GCC unroll 32
  for (std::size_t r = 0; r < kRows; ++r) largest = hn::Max(largest, magnitudes(rows[r]));
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(I32(), largest)));
}

// Rounds to nearest, ties to even. The values are in range.
HWY_INLINE Integers nearest_integers(Row row) {
#if HWY_TARGET == HWY_AVX3  // Highway's function also saturates
  return Integers{_mm512_cvtps_epi32(row.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Integers{_mm256_cvtps_epi32(row.raw)};
#else
  return hn::NearestInt(row);
#endif
}

HWY_INLINE std::size_t whole_blocks(std::size_t count) {
  return count - count % kBlockValues;
}

// A Format has kBytes, the wire size of a block; write(rows, wire, use) and read(wire, use), which
// call use(r, row) with each row of decoded values; and scalar(), the reference. write() does
// nothing and returns false if a value is not finite. kFiniteRests: no finite value minus its
// decoded one is infinite.
template <class Format>
void encode(std::span<const float> values_N, std::byte* wire_B) {
  const std::size_t whole = whole_blocks(values_N.size());
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    const float* values = values_N.data() + i;
    prefetch_ahead(values, kReadAheadBytes, kRowsBytes);
    Rows rows;
    load_rows(values, rows);
    if (!Format::write(rows, wire_B, [](std::size_t, Row) HWY_ATTR {})) {
      Format::scalar().encode(values_N.subspan(i, kBlockValues), wire_B);
    }
  }
  Format::scalar().encode(values_N.subspan(whole), wire_B);
}

template <class Format>
void decode(const std::byte* wire_B, std::span<float> values_N) {
  const std::size_t whole = whole_blocks(values_N.size());
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    float* values = values_N.data() + i;
    Format::read(
        wire_B, [values](std::size_t r, Row row) HWY_ATTR { store_row(row, values + kLanes * r); });
  }
  Format::scalar().decode(wire_B, values_N.subspan(whole));
}

template <class Format>
void decode_add(const std::byte* wire_B, std::span<float> sum_N) {
  const std::size_t whole = whole_blocks(sum_N.size());
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    float* sum = sum_N.data() + i;
    prefetch_ahead(sum, kUpdateAheadBytes, kRowsBytes);
    Format::read(wire_B, [sum](std::size_t r, Row row) HWY_ATTR {
      float* place = sum + kLanes * r;
      store_row(hn::Add(load_row(place), row), place);
    });
  }
  Format::scalar().decode_add(wire_B, sum_N.subspan(whole));
}

template <class Format>
void encode_feedback(std::span<const float> gradient_N,
                     std::span<float> residual_N,
                     std::byte* wire_B) {
  const std::size_t whole = whole_blocks(residual_N.size());
  for (std::size_t i = 0; i < whole; i += kBlockValues, wire_B += Format::kBytes) {
    const float* gradient = gradient_N.data() + i;
    float* residual = residual_N.data() + i;
    prefetch_ahead(gradient, kUpdateAheadBytes, kRowsBytes);
    prefetch_ahead(residual, kUpdateAheadBytes, kRowsBytes);
    Rows sums;
    load_rows(residual, sums);
#pragma GCC unroll 32
    for (std::size_t r = 0; r < kRows; ++r) {
      sums[r] = hn::Add(sums[r], load_row(gradient + kLanes * r));
    }
    const bool finite = Format::write(sums, wire_B, [&](std::size_t r, Row row) HWY_ATTR {
      Row rest = hn::Sub(sums[r], row);
      if constexpr (!Format::kFiniteRests) rest = finite_or_zero(rest, are_finite(rest));
      store_row(rest, residual + kLanes * r);
    });
    if (!finite) {
      Format::scalar().encode_feedback(gradient_N.subspan(i, kBlockValues),
                                       residual_N.subspan(i, kBlockValues), wire_B);
    }
  }
  Format::scalar().encode_feedback(gradient_N.subspan(whole), residual_N.subspan(whole), wire_B);
}

template <class Format>
constexpr FormatKernels kFormat = {encode<Format>, decode<Format>, decode_add<Format>,
                                   encode_feedback<Format>};

#endif

}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
