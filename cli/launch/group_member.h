// The other machines of a launcher of processes: each of them joins the head, process 0.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/launch/started_process.h"

namespace motley {

struct GroupMember {
  StartedProcess process;
  std::string machine;                           // its wanted name in the cluster
  std::string secret;                            // that all processes know; "" = none
  std::optional<std::filesystem::path> run_dir;  // absolute; nothing = CONFIG is not here
  std::uint16_t port = 0;                        // of the head; 0 = by the usual rule
  double wait_s = 0;                             // for the head
};

// Joins, by the ticket that is derived from the secret or that the head has written into the run's
// folder, and returns once the run has ended; if it has failed, with its status. Other errors:
// kUsage or kConfig, if the head cannot be found this way; those of join_head().
[[nodiscard]] Result<void> join_as_member(const GroupMember& member);

}  // namespace motley
