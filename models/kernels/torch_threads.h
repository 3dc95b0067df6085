// The number of threads that the tensor operations of this process may use.
#pragma once

namespace motley {

// Sets it for ATen's own loops, for oneDNN and for the BLAS, if that is OpenBLAS or follows
// OpenMP's setting. Call once, at the start, before any tensor operation. REQUIRES: threads >= 1.
void set_compute_threads(int threads);

// While an instance exists, OpenBLAS computes products on the calling thread alone: for callers
// that divide the work themselves. The destructor restores the number of compute threads. Not
// thread-safe.
class SingleThreadedProducts {
 public:
  SingleThreadedProducts();
  SingleThreadedProducts(const SingleThreadedProducts&) = delete;
  SingleThreadedProducts& operator=(const SingleThreadedProducts&) = delete;
  ~SingleThreadedProducts();
};

}  // namespace motley
