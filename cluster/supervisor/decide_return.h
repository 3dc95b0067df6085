// Decides when machines that a run continues without are used again. Pure functions of the history
// of these machines and of the time that the planner expects to be saved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace motley {

// A machine that the run continues without. Times are those of now_s().
struct AbsentMachine {
  std::string machine;
  int losses = 1;                         // in quick succession; see lost_again()
  double lost_at_s = 0;                   // the last time
  double excluded_until_s = 0;            // it failed by itself; 0 = it did not answer
  std::optional<double> answers_since_s;  // nullopt: it does not answer
};

struct ReturnRules {
  // After its second loss in quick succession a machine is used again at the earliest after this
  // time; each further loss doubles it.
  double first_wait_s = 60;
  double longest_wait_s = 4 * 3600;
  // A loss that comes later than this after the last one is the first one again.
  double forgotten_after_s = 3600;
  // The time within which the faster steps must have saved what the move costs.
  double pays_within_s = 300;
};

// The entry of a machine that is lost now. `before`: its entry for the last loss.
[[nodiscard]] AbsentMachine lost_again(const std::optional<AbsentMachine>& before,
                                       const std::string& machine,
                                       double now_s,
                                       double excluded_until_s,
                                       const ReturnRules& rules);

// The earliest time at which the machine is used again if it answers.
[[nodiscard]] double earliest_return_s(const AbsentMachine& absent, const ReturnRules& rules);

// The machines that may be used again now, in the order of `absent`.
[[nodiscard]] std::vector<std::string> returnable(double now_s,
                                                  std::span<const AbsentMachine> absent,
                                                  const ReturnRules& rules);

// The gain of a move to a plan with the returning machines.
struct ReturnGain {
  double present_step_s = 0;    // predicted for the plan of the launch; 0 = unknown
  double step_s = 0;            // predicted for the plan with them
  double start_s = 0;           // what the move costs
  std::int64_t steps_left = 0;  // until the end of the run
};

// Whether the move saves more time than it costs within rules.pays_within_s, and before the end of
// the run. True if the present plan has no prediction: it was made without a choice.
[[nodiscard]] bool pays(const ReturnGain& gain, const ReturnRules& rules);

}  // namespace motley
