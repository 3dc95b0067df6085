// Layers, depths and slots are ints, as in plans; container indices are std::size_t.
#pragma once

#include <cstddef>

namespace motley {

[[nodiscard]] constexpr std::size_t at(int i) noexcept {
  return static_cast<std::size_t>(i);
}

}  // namespace motley
