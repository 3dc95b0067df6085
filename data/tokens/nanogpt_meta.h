// nanoGPT's meta.pkl, the vocabulary of its token files. It is a pickle, which may run programs and
// is never unpickled: only the size of the vocabulary is searched for in its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace motley {

// The value of its key vocab_size, as Python's pickle protocols 0 and 2 to 5 write it. nullopt if
// it has none or several.
[[nodiscard]] std::optional<std::int64_t> vocab_size_in_meta(std::span<const std::byte> file);

}  // namespace motley
