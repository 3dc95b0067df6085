// The instruction sets of the vector kernels, which are written once, with Highway. A source of
// such kernels includes this header before Highway's.
//
// x86-64: AVX2, AVX-512 (the extensions of Skylake's servers) and the baseline; one is selected at
// run time. 64-bit Arm: NEON, which is its baseline. Reasons:
// docs/decisions/0056-vector-kernels-with-highway.md.
#pragma once

#if defined(__x86_64__)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | (HWY_AVX3 - 1))
#else
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_COMPILE_ONLY_STATIC
#endif

// Whether kernels are compiled for the current HWY_TARGET; for others the scalar reference is used.
// Older releases of Highway lack some of these names, which then count as 0.
#define MOTLEY_VECTOR_TARGET                                                     \
  (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON || \
   HWY_TARGET == HWY_NEON_WITHOUT_AES || HWY_TARGET == HWY_NEON_BF16)
