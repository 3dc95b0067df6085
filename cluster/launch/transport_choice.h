// By which transport the ranks of a launch talk, and whether what they say is encrypted: a pure
// function of the configuration and of where the ranks are.
//
//   comm.transport   "auto" is TCP, the fastest of them (decision 0040). UCX and Gloo neither
//                    encrypt nor authenticate, so they are for one machine and for networks
//                    declared trusted. A named one carries everything.
//   comm.encrypt     "auto": TCP is encrypted between machines unless the network is declared
//                    trusted; inside a machine ranks only prove who they are (decision 0012).
//                    "always": everywhere, which leaves only TCP. "never": neither, where nobody
//                    else can listen.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/launch/worker_group.h"
#include "job/config.h"
#include "plan/cluster.h"

namespace motley {

struct TransportChoice {
  std::string kind;            // as TransportOptions::kind
  bool has_secret = false;     // as TransportOptions::secret
  bool local_shortcut = true;  // as TransportOptions::local_shortcut
  bool is_local = false;       // all ranks are on one machine
  std::string reason;          // a line for the log

  // Whether ranks of one machine share memory.
  [[nodiscard]] bool shares_memory() const { return kind == "tcp" && local_shortcut; }

  // Whether anything travels encrypted.
  [[nodiscard]] bool encrypts() const { return has_secret && !(is_local && local_shortcut); }
};

// For ranks on these machines of the cluster. kConfig when they cannot reach each other (of several
// machines that are reached through the network each needs an address), for a word that is none of
// the above, and for a transport that would expose them.
[[nodiscard]] Result<TransportChoice> choose_transport(const Cluster& cluster,
                                                       const std::set<std::string>& machines,
                                                       const CommConfig& comm);

// Puts the choice into the jobs of one launch, and where it has a secret a fresh one: it reaches
// the workers with their jobs and is written down nowhere. kInternal when there is none.
[[nodiscard]] Result<void> apply_transport(const TransportChoice& choice,
                                           std::vector<WorkerSpec>& workers);

}  // namespace motley
