// Assigns the micro-batches of a step to the replicas of a chunk, and bounds how many of a window
// of consecutive micro-batches a replica has. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace motley {

// Returns [MicroId] the index of the replica that computes it, by smooth weighted round robin: each
// micro-batch goes to the replica that is furthest behind its share, to the first of equals.
// shares: [replica] its number of micro-batches. REQUIRES: shares are 1 or more.
[[nodiscard]] std::vector<std::size_t> assign_micro_batches(std::span<const int> shares);

// Returns [replica] the largest number of its micro-batches among any `window` consecutive ones:
// those that it holds at once where the chunk has `window` in flight; 0 for a replica without
// micro-batches. REQUIRES: window is 1 or more.
[[nodiscard]] std::vector<int> max_in_window(std::span<const std::size_t> owners,
                                             std::size_t replicas,
                                             int window);

}  // namespace motley
