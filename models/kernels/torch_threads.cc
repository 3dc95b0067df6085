#include "models/kernels/torch_threads.h"

#include <dlfcn.h>

#include <ATen/Parallel.h>

#include "base/check.h"

namespace motley {

void set_compute_threads(int threads) {
  MOTLEY_CHECK(threads >= 1, "threads = {}", threads);
  at::set_num_threads(threads);
  // OpenBLAS has threads of its own, as many as there are cores until it is told.
  using SetThreads = void (*)(int);
  const auto set_blas = reinterpret_cast<SetThreads>(  // NOLINT
      ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_blas != nullptr) set_blas(threads);
}

}  // namespace motley
