// InParts: division of a step's work among threads, without LibTorch.
#pragma once

#include <cstdint>
#include <functional>

namespace motley {

// Calls body(first, last) once for each of several ranges, which cover 0 … count and begin at
// multiples of `grain`. The calls may run concurrently. Rethrows an exception of `body` after all
// calls have ended. For threads: models/kernels/in_parts.h.
using InParts = std::function<void(std::int64_t count,
                                   std::int64_t grain,
                                   const std::function<void(std::int64_t, std::int64_t)>& body)>;

// Runs everything on the calling thread.
inline void in_one_part(std::int64_t count,
                        std::int64_t /*grain*/,
                        const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (count > 0) body(0, count);
}

}  // namespace motley
