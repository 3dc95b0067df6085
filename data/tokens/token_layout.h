// The layout of a token file: where its tokens begin and their type, from a header, an index, the
// configuration, or detected. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "data/tokens/token_type.h"

namespace motley {

struct TokenLayout {
  TokenType type = TokenType::kUint16;
  std::size_t begin = 0;       // offset of the first token; the tokens extend to the end
  bool has_usual_type = true;  // declared by the file or its index, or the usual one of such files
};

// For the untrusted bytes of a whole file. `dtype` is data.dtype; if it is "auto" and nothing
// declares the type, it is detected for tokens below `vocab`. kData if the file is damaged, is of
// another kind, or its type cannot be detected.
[[nodiscard]] Result<TokenLayout> layout_of_tokens(std::span<const std::byte> bytes,
                                                   const std::filesystem::path& path,
                                                   const std::string& dtype,
                                                   std::uint32_t vocab);

}  // namespace motley
