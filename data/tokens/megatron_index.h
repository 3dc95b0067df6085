// The index of Megatron's token files: NAME.idx beside NAME.bin. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "data/tokens/token_type.h"

namespace motley {

struct MegatronIndex {
  TokenType type = TokenType::kUint16;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
};

// Parses the untrusted bytes of a whole index of a token file of `bin_bytes`; `path` names it in
// errors. kData if it is of another format or of floats, if its parts contradict each other, or if
// the sequences are not the whole token file, one after another.
[[nodiscard]] Result<MegatronIndex> parse_megatron_index(std::span<const std::byte> file,
                                                         std::uint64_t bin_bytes,
                                                         const std::string& path);

}  // namespace motley
