// WorkWatch: who does work on files that may take long tells of it here, piece by piece, and ends
// it when told to. One owner thread.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace motley {

class WorkWatch {
 public:
  virtual ~WorkWatch() = default;
  // A part of the work begins; another one has ended. REQUIRES: `what` is a literal.
  virtual void begin(const char* what, std::uint64_t bytes_total) = 0;
  // So many bytes more are done: 0 only asks whether to go on. An error ends the work, which then
  // leaves nothing behind.
  [[nodiscard]] virtual Result<void> advance(std::uint64_t bytes) = 0;
};

}  // namespace motley
