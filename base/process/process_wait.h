// The platform-specific parts of starting and awaiting a child process.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// A descriptor that poll reports readable once the child `pid` has ended. It stays valid if the
// number `pid` is reused. kInternal if the system refuses.
[[nodiscard]] Result<OwnedFd> open_exit_fd(pid_t pid);

// Adds to the actions of a spawn that the child closes every descriptor but its standard streams,
// also those that this process inherited without close-on-exec.
void close_all_but_standard(posix_spawn_file_actions_t* actions);

}  // namespace motley
