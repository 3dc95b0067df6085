// Folding: the last layer goes to the device of the first stage, which then has two chunks.
#pragma once

#include <optional>

#include "partitioner/search_space.h"

namespace motley {

// The candidate with a further stage for the last layer, on the slot of the first stage. A last
// stage of that layer alone takes over the layer before it. Not rated. nullopt where the first
// stage has several slots, where there is one stage, or no layer to take over.
[[nodiscard]] std::optional<Candidate> fold(const Candidate& candidate, int layer_count);

}  // namespace motley
