// Division of work on rows among the compute threads (torch_threads.h).
#pragma once

#include <cstdint>
#include <functional>

namespace motley::kernels {

// Calls body(first, last) once for each of several ranges, which cover 0 … count, concurrently on
// as many threads as there are compute threads and ranges; returns when all are done. Ranges begin
// at multiples of `grain`. The results of body must not depend on the number of ranges or their
// threads. Rethrows an exception of a part, once all parts have ended. REQUIRES: grain >= 1.
void in_parts(std::int64_t count,
              std::int64_t grain,
              const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace motley::kernels
