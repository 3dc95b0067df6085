// Gloo's own ring all-reduce, timed for comparison.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace motley {

// Seconds of each run after one warm-up run. folder: shared by all ranks and initially empty, for
// their rendezvous. Throws Gloo's exceptions.
std::vector<double> time_gloo_allreduce(int rank,
                                        int rank_count,
                                        const std::string& address,
                                        const std::string& folder,
                                        std::size_t count,
                                        int runs);

}  // namespace motley
