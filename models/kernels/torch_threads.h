// How many threads the tensor operations of this process may use.
#pragma once

namespace motley {

// Sets it for ATen's own loops, for oneDNN and for the BLAS below, OpenBLAS or one that obeys
// OpenMP's setting.
// Call once, at the start, before any tensor operation. REQUIRES: threads >= 1.
void set_compute_threads(int threads);

// While it lives, products of OpenBLAS keep to the thread that asks for them: for callers that
// divide the work themselves. Afterwards they have as many as before. Not for several threads.
class SingleThreadedProducts {
 public:
  SingleThreadedProducts();
  SingleThreadedProducts(const SingleThreadedProducts&) = delete;
  SingleThreadedProducts& operator=(const SingleThreadedProducts&) = delete;
  ~SingleThreadedProducts();
};

}  // namespace motley
