// The only size of the mlp family that is not configurable.
#pragma once

namespace motley {

// The number of tokens that a position of an mlp sees: itself and its predecessors.
inline constexpr int kMlpWindow = 8;

}  // namespace motley
