// Chooses the transport of a launch and its encryption: a pure function of the configuration and of
// the ranks' machines.
//
//   comm.transport   "auto" is TCP, the fastest (decision 0040). UCX and Gloo neither encrypt nor
//                    authenticate, so they are for one machine and for networks declared
//                    trusted. A named transport carries all messages.
//   comm.encrypt     "auto": TCP is encrypted between machines unless the network is declared
//                    trusted; inside a machine ranks are only authenticated (decision 0012).
//                    "always": everywhere, which only TCP can. "never": neither encryption nor
//                    authentication, permitted only where no other party can listen.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/launch/worker_group.h"
#include "plan/cluster.h"
#include "run_config/config.h"

namespace motley {

struct TransportChoice {
  std::string kind;            // as TransportOptions::kind
  bool has_secret = false;     // as TransportOptions::secret
  bool local_shortcut = true;  // as TransportOptions::local_shortcut
  bool is_local = false;       // all ranks are on one machine
  std::string reason;          // for the log

  // Whether ranks of one machine share memory.
  [[nodiscard]] bool shares_memory() const { return kind == "tcp" && local_shortcut; }

  // Whether any message is encrypted.
  [[nodiscard]] bool encrypts() const { return has_secret && !(is_local && local_shortcut); }
};

// For ranks on these machines of the cluster. kConfig if they cannot reach each other (of several
// machines on a network each needs an address), for a value not listed above, and for a transport
// that would expose them.
[[nodiscard]] Result<TransportChoice> choose_transport(const Cluster& cluster,
                                                       const std::set<std::string>& machines,
                                                       const CommConfig& comm);

// Puts the choice into the jobs of one launch, with a fresh secret if it has one. The secret
// reaches the workers with their jobs and is stored nowhere. kInternal if none can be made.
[[nodiscard]] Result<void> apply_transport(const TransportChoice& choice,
                                           std::vector<WorkerSpec>& workers);

}  // namespace motley
