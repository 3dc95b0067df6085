// The operations that a package may use: functions of LibTorch without side effects. None writes to
// its arguments, draws random numbers, or reads anything but its arguments. The list is
// python/motley/operations.txt, which the exporter reads too; it is compiled in.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace motley {

// "aten::add.Tensor", sorted.
[[nodiscard]] std::span<const std::string_view> allowed_operations();

// The list's own string, which has static lifetime; nullopt if the operation is not in it.
[[nodiscard]] std::optional<std::string_view> find_operation(std::string_view name);

// Motley's own operations, which are not in the list: (Tensor like, float p, int index) -> Tensor,
// and those of draws.h.
inline constexpr std::string_view kDropoutMask = "motley::dropout_mask";
inline constexpr std::string_view kUniformNumbers = "motley::uniform";
inline constexpr std::string_view kNormalNumbers = "motley::normal";
inline constexpr std::string_view kExponentialNumbers = "motley::exponential";
inline constexpr std::string_view kIntegerNumbers = "motley::integers";
inline constexpr int kDrawPlaces = 256;  // the most masks and draws in a layer

}  // namespace motley
