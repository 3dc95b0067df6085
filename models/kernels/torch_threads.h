// How many threads the tensor operations of this process may use.
#pragma once

namespace motley {

// Sets it for ATen's own loops, for oneDNN and for the BLAS below, OpenBLAS or one that obeys
// OpenMP's setting.
// Call once, at the start, before any tensor operation. REQUIRES: threads >= 1.
void set_compute_threads(int threads);

}  // namespace motley
