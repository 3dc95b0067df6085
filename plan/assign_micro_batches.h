// Turns: which replica of a chunk takes which micro-batch of a step, and how many of them come to
// one replica in a row of some.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace motley {

// [MicroId] the number of the replica that takes it. The replicas take turns in proportion to their
// shares: each micro-batch goes to the one that is furthest behind its share, the first when two
// are. REQUIRES: shares are 1 or more.
[[nodiscard]] std::vector<std::size_t> assign_micro_batches(std::span<const int> shares);

// [replica] The most of any `window` micro-batches in a row that it has: what it holds at once
// where the chunk has so many in flight. 0 for a replica that has none. REQUIRES: window is 1 or
// more.
[[nodiscard]] std::vector<int> most_in_a_row(std::span<const std::size_t> owners,
                                             std::size_t replicas,
                                             int window);

}  // namespace motley
