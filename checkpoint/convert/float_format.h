// Dtypes of files of weights: fp32, or rounded to 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

enum class FloatFormat { kFp32, kFp16, kBf16 };

// fp32, fp16 or bf16; nullopt for other text.
[[nodiscard]] std::optional<FloatFormat> parse_float_format(std::string_view word);
// The name in safetensors: F32, F16, BF16.
[[nodiscard]] const char* safetensors_dtype(FloatFormat format);
// The name in config.json: float32, float16, bfloat16.
[[nodiscard]] const char* torch_dtype(FloatFormat format);

// The largest finite number of the format.
[[nodiscard]] float largest_number(FloatFormat format);

// Converts the values into `bytes`, which is resized: round to nearest, ties to even. A finite
// value that would round to infinity becomes the largest finite number with its sign; returns the
// index of the first such value, if there is one.
[[nodiscard]] std::optional<std::size_t> write_numbers(std::span<const float> values,
                                                       FloatFormat format,
                                                       std::vector<std::byte>& bytes);

}  // namespace motley
