#include "models/kernels/torch_threads.h"

#include <ATen/Parallel.h>

#include "base/check.h"

namespace motley {

void set_compute_threads(int threads) {
  MOTLEY_CHECK(threads >= 1, "threads = {}", threads);
  at::set_num_threads(threads);
}

}  // namespace motley
