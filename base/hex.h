// Bytes as lower-case hexadecimal text, for what travels in JSON.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

[[nodiscard]] std::string to_hex(std::span<const char> bytes);

// Nothing when the text is not whole bytes in hexadecimal.
[[nodiscard]] std::optional<std::vector<char>> from_hex(std::string_view text);

}  // namespace motley
