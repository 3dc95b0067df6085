#include "base/system/privacy.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/check.h"

namespace motley {

void keep_files_private(const std::filesystem::path& folder) {
  struct stat info {};

  const bool exists = ::stat(folder.c_str(), &info) == 0;
  const mode_t group = exists ? info.st_mode & S_IRWXG : 0;
  ::umask((S_IRWXG | S_IRWXO) & ~group);
}

void forbid_core_dumps() {
  // A limit of one byte, not 0: with 0, Linux still passes the dump to a handler program (e.g.
  // systemd-coredump); with 1 it discards it. Dumps to files are at least a page, so none is
  // written. The process stays "dumpable" (PR_SET_DUMPABLE), because UCX shares memory through
  // /proc/PID/fd.
  constexpr rlimit kNone{.rlim_cur = 1, .rlim_max = 1};
  rlimit before{};
  MOTLEY_CHECK(::getrlimit(RLIMIT_CORE, &before) == 0, "the system reports no limit of core files");
  if (before.rlim_max == 0) return;  // already disabled
  MOTLEY_CHECK(::setrlimit(RLIMIT_CORE, &kNone) == 0, "a process may lower its own limits");
}

}  // namespace motley
