// Small messages by Gloo alone, to time beside ours.
#pragma once

#include <cstddef>
#include <string>

namespace motley {

// Between two ranks, both of which call it; half of the median round trip on rank 0. folder: shared
// by both, empty at first, where they find each other. Throws what Gloo throws.
double measure_gloo_ping_s(
    int rank, const std::string& address, const std::string& folder, std::size_t bytes, int count);

}  // namespace motley
