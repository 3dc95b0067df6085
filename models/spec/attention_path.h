// The implementations of causal attention of gpt2, from queries, keys and values to the outputs of
// the heads. The CPU kernels and LibTorch 1.13 have one path. Later versions have operations for
// some devices that never hold a whole matrix of scores. The tensors that a layer saves for
// backward depend on the path.
#pragma once

#include <cstdint>

namespace motley {

enum class AttentionPath {
  kExplicit,   // products of whole score matrices; saves the probabilities of every pair
  kFlash,      // LibTorch's _scaled_dot_product_flash_attention, for bf16 and fp16
  kEfficient,  // its _scaled_dot_product_efficient_attention, also for fp32
};

// Whether the model's attention may use another path than kExplicit: fused dropout would have other
// masks on each device, and not every card's operations support other head widths.
[[nodiscard]] constexpr bool may_fuse_attention(std::int64_t head_width, double dropout) {
  constexpr std::int64_t kMultiple = 8;
  constexpr std::int64_t kWidthMax = 128;
  return dropout == 0 && head_width % kMultiple == 0 && head_width <= kWidthMax;
}

// Bytes saved for one sample from forward to backward besides queries, keys, values and outputs:
// `value_bytes` for each probability, or the logarithm of each row's sum in fp32.
[[nodiscard]] constexpr std::int64_t attention_saved_bytes(AttentionPath path,
                                                           std::int64_t heads,
                                                           std::int64_t tokens,
                                                           std::int64_t value_bytes) {
  constexpr std::int64_t kSumBytes = 4;
  constexpr std::int64_t kEfficientRows = 32;  // its rows are padded to a multiple of this
  switch (path) {
    case AttentionPath::kExplicit:
      return heads * tokens * tokens * value_bytes;
    case AttentionPath::kFlash:
      return heads * tokens * kSumBytes;
    case AttentionPath::kEfficient:
      return heads * ((tokens + kEfficientRows - 1) / kEfficientRows * kEfficientRows) * kSumBytes;
  }
  return 0;
}

}  // namespace motley
