// StartGate: limits how many workers log in to one machine at once. An sshd drops connections at
// random while more than ten are logging in (MaxStartups 10:30:100). Pure: the time is passed in.
#pragma once

#include <string>
#include <vector>

#include "base/process/process.h"

namespace motley {

class StartGate {
 public:
  // Whether one more may be started through `prefix`; only starts through ssh ever wait.
  [[nodiscard]] bool is_open(const std::vector<std::string>& prefix, double now_s) const;
  // Records a start.
  void enter(const std::vector<std::string>& prefix, double now_s);
  // Records that one of them has logged in or ended.
  void leave(const std::vector<std::string>& prefix);

 private:
  // Below sshd's limit, because other users log in too.
  static constexpr std::size_t kAtOnceMax = 8;
  // A login takes less, though the remote program may still be loading.
  static constexpr double kLogin_s = 2;

  struct Login {
    std::vector<std::string> prefix;
    double since_s = 0;
  };

  std::vector<Login> logins_;
};

// Whether an ssh that ended this way before its worker's hello may succeed when retried, because
// the remote side was too busy to accept it. `last_lines` are the end of its stderr.
[[nodiscard]] bool was_rejected(const std::vector<std::string>& prefix,
                                const ProcessExit& exit,
                                const std::vector<std::string>& last_lines);

// Seconds to wait before the next attempt after `tries` rejected ones; negative: no further
// attempt.
[[nodiscard]] double wait_before_retry_s(int tries);

}  // namespace motley
