// CpuQuota: a limit on the processor time of a process and of all it starts, so that one machine
// can stand in for slower ones. The system's part is in cpu_quota_linux.cc (control groups, v1 or
// v2).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

class CpuQuota {
 public:
  // A new group `name` that gets `cores` cores' worth of time, e.g. 0.5. kInternal, with the
  // reason, where the system does not let us. REQUIRES: cores > 0.
  [[nodiscard]] static Result<CpuQuota> create(const std::string& name, double cores);
  CpuQuota(CpuQuota&& other) noexcept;
  CpuQuota& operator=(CpuQuota&&) = delete;
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;
  ~CpuQuota();  // removes the group. REQUIRES: its processes have been killed.

  // Puts a process into the group; what it starts from then on is in it too.
  [[nodiscard]] Result<void> add(pid_t pid) const;

 private:
  explicit CpuQuota(std::filesystem::path folder);

  std::filesystem::path folder_;  // empty = moved away
};

}  // namespace motley
