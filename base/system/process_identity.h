// ProcessIdentity: identifies a process, so that another process can check later whether it runs.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

struct ProcessIdentity {
  std::string host;   // for display
  std::string place;  // PID namespace: this boot and the container; "" = unknown
  std::int64_t pid = 0;
  std::uint64_t started = 0;  // in ticks since boot: the system may reuse a pid
  std::string installation;   // installation_id()
};

[[nodiscard]] ProcessIdentity this_process();

enum class ProcessLiveness { kRuns, kGone, kElsewhere };

// Whether the process still runs. kElsewhere: it is not visible from here (another machine or
// container, or the system was rebooted), so its state is unknown.
[[nodiscard]] ProcessLiveness liveness_of(const ProcessIdentity& process);

// Whether the process ran on this installed system, under this host name, before the last boot. If
// so, it has ended, provided that no copy of the system has the same name.
[[nodiscard]] bool is_of_earlier_boot(const ProcessIdentity& process);

}  // namespace motley
