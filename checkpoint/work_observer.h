// WorkObserver: receives the progress of long work on files, piece by piece, and can end it. One
// owner thread.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace motley {

class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // A part of the work begins, and the previous one has ended. REQUIRES: `what` is a literal.
  virtual void begin(const char* what, std::uint64_t bytes_total) = 0;
  // `bytes` more are done; 0 only asks whether to continue. An error ends the work, which then
  // leaves nothing behind.
  [[nodiscard]] virtual Result<void> advance(std::uint64_t bytes) = 0;
};

}  // namespace motley
