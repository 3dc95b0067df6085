// Small messages over Gloo alone, timed for comparison.
#pragma once

#include <cstddef>
#include <string>

namespace motley {

// Called by both of two ranks; half of the median round trip on rank 0. folder: shared by both and
// initially empty, for their rendezvous. Throws Gloo's exceptions.
double measure_gloo_ping_s(
    int rank, const std::string& address, const std::string& folder, std::size_t bytes, int count);

}  // namespace motley
