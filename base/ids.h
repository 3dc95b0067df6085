// Ids are distinct types, so that a rank cannot be passed where a chunk is expected.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace motley {

template <class Tag>
struct Id {
  std::int32_t value = 0;

  friend constexpr auto operator<=>(Id, Id) = default;

  // The id as an index into a container indexed by it. REQUIRES: value >= 0.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

using Rank = Id<struct RankTag>;        // one worker process
using ChunkId = Id<struct ChunkIdTag>;  // a contiguous run of layers, numbered along the model
using MicroId = Id<struct MicroIdTag>;  // a micro-batch within its step

}  // namespace motley

template <class Tag>
struct std::hash<motley::Id<Tag>> {
  std::size_t operator()(motley::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
