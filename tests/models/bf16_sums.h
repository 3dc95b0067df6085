// How LibTorch adds up products of bf16 numbers on this processor, which decides what a test may
// expect of them.
#pragma once

#include <cstdint>

#include <ATen/ATen.h>

namespace motley::testing {

// In fp32, as devices with bf16 do. Some versions add up in bf16 itself on processors without
// instructions for it, where ones stop adding up at 256: results then lose bits with every term.
// Motley's jobs do not compute so: `cpu` has bf16 only where the processor has it.
inline bool bf16_sums_are_wide() {
  constexpr std::int64_t kTerms = 512;
  const at::Tensor sum =
      at::matmul(at::ones({1, kTerms}, at::kBFloat16), at::ones({kTerms, 1}, at::kBFloat16));
  return sum.item<float>() == static_cast<float>(kTerms);
}

}  // namespace motley::testing
