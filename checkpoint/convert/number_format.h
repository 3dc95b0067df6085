// Numbers as a file of weights holds them: fp32, or rounded to 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

enum class NumberFormat { kFp32, kFp16, kBf16 };

// fp32, fp16 or bf16; nothing for other words.
[[nodiscard]] std::optional<NumberFormat> parse_number_format(std::string_view word);
// As safetensors name it: F32, F16, BF16.
[[nodiscard]] const char* safetensors_dtype(NumberFormat format);
// As config.json names it: float32, float16, bfloat16.
[[nodiscard]] const char* torch_dtype(NumberFormat format);

// The largest finite number of the format.
[[nodiscard]] float largest_number(NumberFormat format);

// Writes the values' bytes into `bytes`, which gets their size: to nearest, ties to even. What is
// finite and would round beyond the largest finite number of the format becomes that one with its
// sign; returns the place of the first such value, if there is one.
[[nodiscard]] std::optional<std::size_t> write_numbers(std::span<const float> values,
                                                       NumberFormat format,
                                                       std::vector<std::byte>& bytes);

}  // namespace motley
