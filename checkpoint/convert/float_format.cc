#include "checkpoint/convert/float_format.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compression/formats/half.h"

namespace motley {
namespace {

struct Names {
  FloatFormat format;
  std::string_view word;
  const char* dtype;
  const char* torch;
};

constexpr std::array kNames = {
    Names{FloatFormat::kFp32, "fp32", "F32", "float32"},
    Names{FloatFormat::kFp16, "fp16", "F16", "float16"},
    Names{FloatFormat::kBf16, "bf16", "BF16", "bfloat16"},
};

const Names& names_of(FloatFormat format) {
  return *std::ranges::find(kNames, format, &Names::format);
}

// Compares the bits as magnitudes; bits from infinity on are not finite.
std::optional<std::size_t> first_from(std::span<const float> values, float least) {
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  const auto least_bits = std::bit_cast<std::uint32_t>(least);
  const auto found = std::ranges::find_if(values, [least_bits](float value) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
    return magnitude >= least_bits && magnitude < kInfinity;
  });
  if (found == values.end()) return {};
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace

std::optional<FloatFormat> parse_float_format(std::string_view word) {
  const auto found = std::ranges::find(kNames, word, &Names::word);
  return found == kNames.end() ? std::nullopt : std::optional(found->format);
}

const char* safetensors_dtype(FloatFormat format) {
  return names_of(format).dtype;
}

const char* torch_dtype(FloatFormat format) {
  return names_of(format).torch;
}

float largest_number(FloatFormat format) {
  if (format == FloatFormat::kFp16) return 65504.0F;
  return format == FloatFormat::kBf16 ? 0x1.FEp127F : 0x1.FFFFFEp127F;
}

std::optional<std::size_t> write_numbers(std::span<const float> values,
                                         FloatFormat format,
                                         std::vector<std::byte>& bytes) {
  if (format == FloatFormat::kFp32) {
    const auto raw = std::as_bytes(values);
    bytes.assign(raw.begin(), raw.end());
    return {};
  }
  // Half a unit beyond the largest number of the format; ties round up to infinity.
  constexpr float kBeyondFp16 = 65520.0F;
  constexpr float kBeyondBf16 = 0x1.FFp127F;
  bytes.resize(half_bytes(values.size()));
  const bool is_fp16 = format == FloatFormat::kFp16;
  const HalfKernels& kernels = best_half_kernels();
  (is_fp16 ? kernels.fp16 : kernels.bf16).encode(values, bytes.data());
  return first_from(values, is_fp16 ? kBeyondFp16 : kBeyondBf16);
}

}  // namespace motley
