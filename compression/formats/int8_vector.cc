// The vector kernels of int8.
#include <cmath>
#include <cstring>

#include "compression/formats/block_quantise.h"
#include "compression/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/formats/int8_vector.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "compression/formats/vector_blocks.h"

HWY_BEFORE_NAMESPACE();

namespace motley::HWY_NAMESPACE {
namespace {

#if MOTLEY_VECTOR_TARGET

struct Int8 {
  static constexpr std::size_t kBytes = kInt8BlockBytes;
  static constexpr bool kFiniteRests = true;  // at most 0.51 of the scale

  template <class Use>
  static HWY_INLINE bool write(const Rows& rows, std::byte* wire_B, const Use& use) {
    const BlockScale block = block_scale(largest_magnitude_bits(rows), kInt8Largest, kInt8ScaleMax);
    if (std::isnan(block.scale)) return false;
    std::memcpy(wire_B, &block.scale, kBlockScaleBytes);
    const Row inverse = hn::Set(F32(), block.inverse);
    const Row factor = hn::Set(F32(), block.scale);
#pragma GCC unroll 8
    for (std::size_t first = 0; first < kRows; first += 4) {
      Integers codes[4];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        codes[i] = nearest_integers(hn::Mul(rows[first + i], inverse));
      }
      store_bytes(packed_rows(codes[0], codes[1], codes[2], codes[3]),
                  wire_B + kBlockScaleBytes + kLanes * first);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        use(first + i, hn::Mul(hn::ConvertTo(F32(), codes[i]), factor));
      }
    }
    return true;
  }

  template <class Use>
  static HWY_INLINE void read(const std::byte* wire_B, const Use& use) {
    const hn::Rebind<std::int8_t, F32> quarter;
    float scale = 0;
    std::memcpy(&scale, wire_B, kBlockScaleBytes);
    const Row factor = hn::Set(F32(), scale);
    const auto* codes = reinterpret_cast<const std::int8_t*>(wire_B + kBlockScaleBytes);
#pragma GCC unroll 32
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto integers = hn::PromoteTo(I32(), hn::LoadU(quarter, codes + kLanes * r));
      use(r, hn::Mul(hn::ConvertTo(F32(), integers), factor));
    }
  }

  static const FormatKernels& scalar() {
    return scalar_block_kernels().int8;
  }
};

const FormatKernels& int8_kernels() {
  static constexpr FormatKernels kKernels = kFormat<Int8>;
  return kKernels;
}

#else

const FormatKernels& int8_kernels() {
  return scalar_block_kernels().int8;
}

#endif

}  // namespace
}  // namespace motley::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace motley {

HWY_EXPORT(int8_kernels);

const FormatKernels& best_int8_kernels() {
  return HWY_DYNAMIC_DISPATCH(int8_kernels)();
}

}  // namespace motley

#endif
