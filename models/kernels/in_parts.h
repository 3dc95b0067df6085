// Work on rows, divided among the compute threads (torch_threads.h).
#pragma once

#include <cstdint>
#include <functional>

namespace motley::kernels {

// Calls body(first, last) for ranges that together are 0 … count, each once, at the same time on as
// many threads as there are compute threads and ranges; returns when all are done. Ranges begin at
// multiples of `grain`. Which thread takes which, and how many there are, must not matter to what
// body computes. What a part throws is thrown here, once all parts have ended. REQUIRES: grain
// >= 1.
void in_parts(std::int64_t count,
              std::int64_t grain,
              const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace motley::kernels
