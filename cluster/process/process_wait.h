// The parts of a child process's life that each system does its own way.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// A descriptor that poll reports readable once the child `pid` has ended. It stays valid whatever
// happens to the number `pid`. kInternal when the system refuses.
[[nodiscard]] Result<OwnedFd> open_exit_fd(pid_t pid);

// Adds to the actions of a spawn that the child closes every descriptor but its standard streams,
// also those that this process inherited without close-on-exec from whoever started it.
void close_all_but_standard(posix_spawn_file_actions_t* actions);

}  // namespace motley
