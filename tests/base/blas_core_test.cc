#include "base/system/blas_core.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr VectorUnits kOld{};
constexpr VectorUnits kDesktop{.avx2 = true};
constexpr VectorUnits kServer{.avx2 = true, .avx512 = true};
constexpr VectorUnits kNewServer{.avx2 = true, .avx512 = true, .bf16 = true};

// "Prescott" is OpenBLAS's fallback for an unknown processor.
TEST(BlasCore, IsBetterWhereTheProcessorIsNewerThanTheLibrary) {
  EXPECT_EQ(better_blas_core("Prescott", kDesktop), "Haswell");
  EXPECT_EQ(better_blas_core("Prescott", kServer), "SkylakeX");
  EXPECT_EQ(better_blas_core("Prescott", kNewServer), "Cooperlake");
}

TEST(BlasCore, StaysWhereTheLibraryKnowsTheProcessor) {
  for (const char* taken : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sandybridge", ""}) {
    EXPECT_EQ(better_blas_core(taken, kNewServer), "") << taken;
  }
}

TEST(BlasCore, StaysWhereTheProcessorHasNothingBetter) {
  EXPECT_EQ(better_blas_core("Prescott", kOld), "");
}

TEST(BlasCore, IsUnknownWithoutOpenBlas) {
  EXPECT_EQ(blas_core(), "");
}

}  // namespace
}  // namespace motley
