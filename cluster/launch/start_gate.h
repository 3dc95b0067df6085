// StartGate: how many workers may be on their way into one machine at once. An sshd drops
// connections at random while more than ten are about to log in (MaxStartups 10:30:100). Pure: the
// time is passed in.
#pragma once

#include <string>
#include <vector>

#include "cluster/process/process.h"

namespace motley {

class StartGate {
 public:
  // Whether one more may be started through `prefix`; only those of ssh ever wait.
  [[nodiscard]] bool is_open(const std::vector<std::string>& prefix, double now_s) const;
  // One was started.
  void enter(const std::vector<std::string>& prefix, double now_s);
  // One of those has logged in, or ended.
  void leave(const std::vector<std::string>& prefix);

 private:
  // Fewer than sshd bears, for others log in too.
  static constexpr std::size_t kAtOnceMax = 8;
  // By then a login is over, though the program over there may still be loading.
  static constexpr double kLogin_s = 2;

  struct Login {
    std::vector<std::string> prefix;
    double since_s = 0;
  };

  std::vector<Login> logins_;
};

// Whether an ssh that ended so before its worker had said a word may well succeed when it is tried
// again: the other side was too busy to let it in. `last_lines` are the end of its stderr.
[[nodiscard]] bool was_rejected(const std::vector<std::string>& prefix,
                                const ProcessExit& exit,
                                const std::vector<std::string>& last_lines);

// Seconds to wait before the next try after `tries` that were turned away; negative: enough.
[[nodiscard]] double wait_before_retry_s(int tries);

}  // namespace motley
