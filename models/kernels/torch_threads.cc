#include "models/kernels/torch_threads.h"

#include <dlfcn.h>

#include <ATen/Parallel.h>

#include "base/check.h"

namespace motley {
namespace {

// OpenBLAS has a thread pool of its own, by default with a thread for each core.
void set_blas_threads(int threads) {
  using SetThreads = void (*)(int);
  static const auto set = reinterpret_cast<SetThreads>(  // NOLINT
      ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set != nullptr) set(threads);
}

}  // namespace

void set_compute_threads(int threads) {
  MOTLEY_CHECK(threads >= 1, "threads = {}", threads);
  at::set_num_threads(threads);
  set_blas_threads(threads);
}

SingleThreadedProducts::SingleThreadedProducts() {
  set_blas_threads(1);
}

SingleThreadedProducts::~SingleThreadedProducts() {
  set_blas_threads(at::get_num_threads());
}

}  // namespace motley
