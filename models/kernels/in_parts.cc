// The only file that is compiled for OpenMP: LibTorch's loops run on its threads, so these loops
// share them instead of using another pool.
#include "models/kernels/in_parts.h"

#include <omp.h>

#include <algorithm>
#include <exception>

namespace motley::kernels {

void in_parts(std::int64_t count,
              std::int64_t grain,
              const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  if (grains == 0) return;
#if defined(__SANITIZE_THREAD__)
  // Thread sanitizer does not see how OpenMP's library waits.
  return body(0, count);
#else
  if (grains == 1 || omp_get_max_threads() == 1 || omp_in_parallel() != 0) return body(0, count);
  std::exception_ptr thrown;
#pragma omp parallel default(none) shared(body, count, grain, grains, thrown)
  {
    const std::int64_t threads = std::min<std::int64_t>(omp_get_num_threads(), grains);
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t first = grains * thread / threads * grain;
    const std::int64_t last = std::min(count, grains * (thread + 1) / threads * grain);
    if (thread < threads && first < last) {
      try {
        body(first, last);
      } catch (...) {
#pragma omp critical(motley_in_parts)
        thrown = std::current_exception();
      }
    }
  }
  if (thrown) std::rethrow_exception(thrown);
#endif
}

}  // namespace motley::kernels
