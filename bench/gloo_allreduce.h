// Gloo's own ring allreduce, to time beside ours.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace motley {

// Seconds of each run after one that warms up. folder: shared by all ranks, empty at first, where
// they find each other. Throws what Gloo throws.
std::vector<double> time_gloo_allreduce(int rank,
                                        int rank_count,
                                        const std::string& address,
                                        const std::string& folder,
                                        std::size_t count,
                                        int runs);

}  // namespace motley
