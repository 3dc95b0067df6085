// The part of a child process's end that each system does its own way.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "cluster/owned_fd.h"

namespace motley {

// A descriptor that poll reports readable once the child `pid` has ended. It stays valid whatever
// happens to the number `pid`. kInternal when the system refuses.
[[nodiscard]] Result<OwnedFd> open_exit_fd(pid_t pid);

}  // namespace motley
