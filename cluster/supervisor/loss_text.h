// Messages about a launch that ended early, and about the wait for absent machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cluster/supervisor/decide.h"

namespace motley {

// The failure, the machines left out or waited for, and the next action, in one line. `saved_step`:
// of the newest checkpoint, 0 = there is none. REQUIRES: the decision is not to end.
[[nodiscard]] std::string loss_text(const Error& error,
                                    const Decision& decision,
                                    const FailedAttempt& failed_attempt,
                                    const RecoveryRules& rules,
                                    std::int64_t saved_step);

// "the run continues from step 300, 12 steps are repeated".
[[nodiscard]] std::string restart_text(std::int64_t saved_step, std::int64_t last_step);

// kPeer: the run could not continue without machines that do not answer; `failed` is the reason.
// have_joined: by ticket, all of them.
[[nodiscard]] Error absent_machines_error(const Error& failed,
                                          const std::vector<std::string>& silent,
                                          bool have_joined);

// Logs while the run waits for machines: at the start, and then once a minute.
class OutageLog {
 public:
  explicit OutageLog(const Log& log) : log_(log) {}

  // Starts the wait; false if it has started before.
  [[nodiscard]] bool begins();
  void report_silent(const std::vector<std::string>& silent);
  // Ends the wait; true if there was one and no machine is silent any more.
  [[nodiscard]] bool ends(const std::vector<std::string>& silent);

 private:
  const Log& log_;
  std::optional<double> since_s_;
  double logged_at_s_ = 0;
};

}  // namespace motley
