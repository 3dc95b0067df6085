// How many threads the tensor operations of this process may use.
#pragma once

namespace motley {

// Sets it for ATen's own loops and for the BLAS below it, as far as that obeys OpenMP's setting.
// Call once, at the start, before any tensor operation. REQUIRES: threads >= 1.
void set_compute_threads(int threads);

}  // namespace motley
