#include "cli/work_progress.h"

namespace motley {

void WorkProgress::begin(const char* what, std::uint64_t bytes_total) {
  task_.reset();
  task_.emplace(counter_, what, bytes_total);
  line_.say(counter_.words());
}

Result<void> WorkProgress::advance(std::uint64_t bytes) {
  if (auto stop = signals_.take()) return *std::move(stop);
  counter_.add_bytes(bytes);
  line_.say(counter_.words());
  return {};
}

}  // namespace motley
