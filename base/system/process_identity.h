// ProcessIdentity: which process somebody is, in words that another process can look up later.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

struct ProcessIdentity {
  std::string host;   // for people
  std::string place;  // the table of processes that `pid` belongs to: this start of the system, and
                      // the container; "" = unknown
  std::int64_t pid = 0;
  std::uint64_t started = 0;  // in ticks since the system's start: a pid may be given out again
};

[[nodiscard]] ProcessIdentity this_process();

enum class ProcessFate { kRuns, kGone, kElsewhere };

// Whether the process still runs. kElsewhere: it is not to be seen from here (another machine or
// container, or the system was started anew), so it may do either.
[[nodiscard]] ProcessFate fate_of(const ProcessIdentity& process);

}  // namespace motley
