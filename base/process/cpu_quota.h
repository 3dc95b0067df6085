// CpuQuota: a limit on the processor time of a process and its descendants, so that one machine can
// stand in for slower ones. The implementation for Linux control groups (v1 or v2) is in
// cpu_quota_linux.cc.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

class CpuQuota {
 public:
  // Creates the control group `name` with a quota of `cores` cores, e.g. 0.5. kInternal, with the
  // reason, if the system does not permit it. REQUIRES: cores > 0.
  [[nodiscard]] static Result<CpuQuota> create(const std::string& name, double cores);
  CpuQuota(CpuQuota&& other) noexcept;
  CpuQuota& operator=(CpuQuota&&) = delete;
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;
  ~CpuQuota();  // removes the group. REQUIRES: its processes have been killed.

  // Adds a process to the group, and with it every process that it starts afterwards.
  [[nodiscard]] Result<void> add(pid_t pid) const;

 private:
  explicit CpuQuota(std::filesystem::path folder);

  std::filesystem::path folder_;  // empty = moved from
};

}  // namespace motley
