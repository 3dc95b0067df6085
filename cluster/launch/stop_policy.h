// StopPolicy: decides what a launcher does with the workers of its group when it receives a signal.
// Pure: the time is passed in.
#pragma once

#include <optional>

#include "base/result.h"

namespace motley {

enum class StopAction {
  kFinish,     // let the workers finish the step under way
  kTerminate,  // terminate them at once
  kIgnore,     // a duplicate of the previous signal
};

class StopPolicy {
 public:
  // The action for a signal, `stop`, received at `at_s` (now_s()). The first signal finishes if the
  // workers can (`can_finish`); every other one terminates. A signal right after the one that asked
  // to finish is ignored, since one request to stop may arrive as several signals.
  [[nodiscard]] StopAction on_signal(const Error& stop, bool can_finish, double at_s);

  // The signal that was answered by kFinish.
  [[nodiscard]] const std::optional<Error>& finished_by() const { return finished_by_; }

 private:
  std::optional<Error> finished_by_;
  double finish_at_s_ = 0;  // meaningful with finished_by_
};

}  // namespace motley
