// The precision in which LibTorch accumulates bf16 products on this processor, on which a test's
// tolerance depends.
#pragma once

#include <cstdint>

#include <ATen/ATen.h>

namespace motley::testing {

// Whether it is fp32, as on devices with bf16. Some versions accumulate in bf16 on processors
// without bf16 instructions. A sum of ones then stops at 256, and results lose bits with every
// term. Motley's jobs never compute in this way: `cpu` offers bf16 only if the processor supports
// it.
inline bool bf16_sums_are_wide() {
  constexpr std::int64_t kTerms = 512;
  const at::Tensor sum =
      at::matmul(at::ones({1, kTerms}, at::kBFloat16), at::ones({kTerms, 1}, at::kBFloat16));
  return sum.item<float>() == static_cast<float>(kTerms);
}

}  // namespace motley::testing
