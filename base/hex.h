// Bytes as lower-case hexadecimal text, for JSON messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

[[nodiscard]] std::string to_hex(std::span<const char> bytes);

// nullopt if the text is not hexadecimal or ends within a byte.
[[nodiscard]] std::optional<std::vector<char>> from_hex(std::string_view text);

}  // namespace motley
