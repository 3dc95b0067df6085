// StopPolicy: what each signal that reaches a launcher asks of the workers of its group. Pure: the
// time is passed in.
#pragma once

#include <optional>

#include "base/result.h"

namespace motley {

class StopPolicy {
 public:
  enum class StopAction {
    kFinish,     // let the workers finish what they do
    kEndAtOnce,  // end them
    kKnown,      // nothing new: it belongs to the signal before
  };

  // A signal has come. The first one asks to finish where the workers can; every other ends them,
  // but for one of the same moment: a single wish may come as several signals.
  [[nodiscard]] StopAction take(const Error& stop, bool can_finish, double at_s);

  // The signal that asked to finish.
  [[nodiscard]] const std::optional<Error>& finished_by() const { return finished_by_; }

 private:
  std::optional<Error> finished_by_;
  double asked_at_s_ = 0;  // meaningful with finished_by_
};

}  // namespace motley
