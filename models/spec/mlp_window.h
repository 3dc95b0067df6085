// The one size of the mlp family that is not configured.
#pragma once

namespace motley {

// Tokens that a position of an mlp sees: itself and those just before it.
inline constexpr int kMlpWindow = 8;

}  // namespace motley
