// How causal attention of gpt2 goes from queries, keys and values to what its heads give. The CPU's
// kernels and LibTorch 1.13 know one way; later LibTorch has operations for some devices that never
// hold a whole matrix of scores. What a layer keeps for backward follows from the path.
#pragma once

#include <cstdint>

namespace motley {

enum class AttentionPath {
  kExplicit,   // by products of whole score matrices; keeps the probabilities of every pair
  kFlash,      // LibTorch's _scaled_dot_product_flash_attention, of bf16 and fp16
  kEfficient,  // its _scaled_dot_product_efficient_attention, of fp32 too
};

// Whether the model's attention may go by another path than kExplicit at all: dropout inside
// attention would have masks of its own on each device, and heads of other widths are not what
// every card's operations take.
[[nodiscard]] constexpr bool may_fuse_attention(std::int64_t head_width, double dropout) {
  constexpr std::int64_t kMultiple = 8;
  constexpr std::int64_t kWidthMax = 128;
  return dropout == 0 && head_width % kMultiple == 0 && head_width <= kWidthMax;
}

// What is kept of one sample from forward to backward beside queries, keys, values and outputs:
// `value_bytes` of each probability, or the logarithm of each row's sum in fp32.
[[nodiscard]] constexpr std::int64_t attention_kept_bytes(AttentionPath path,
                                                          std::int64_t heads,
                                                          std::int64_t tokens,
                                                          std::int64_t value_bytes) {
  constexpr std::int64_t kSumBytes = 4;
  constexpr std::int64_t kEfficientRows = 32;  // whose rows come in so many
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
