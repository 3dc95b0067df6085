// ValueLedger: the state of each value of a step while a schedule is interpreted without computing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/schedule/action.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/check_result.h"

namespace motley {

class ValueLedger {
 public:
  // The rules are borrowed.
  ValueLedger(const ActionRules& rules, std::size_t rank_count);

  // Uses the action's inputs: all of them or, if one is missing, none.
  [[nodiscard]] CheckResult use(const Action& action);

  // Whether the action has already made its outputs.
  [[nodiscard]] bool is_made(const Action& action) const;

  // Records that the action has made its outputs.
  void make(const Action& action);

  // ST, SA, SG.
  [[nodiscard]] CheckResult send(const Action& action);

  // RT, RA, RG.
  [[nodiscard]] CheckResult post(const Action& action);

  // A message that is only sent or only posted, at the end of the step.
  [[nodiscard]] std::optional<std::string> left_over() const;

  // [Rank] The most receives that were posted and not used at one time.
  [[nodiscard]] const std::vector<int>& peak_posted() const { return peak_posted_; }

  // [Rank] The most values for other ranks that were unsent at one time.
  [[nodiscard]] const std::vector<int>& peak_unsent() const { return peak_unsent_; }

 private:
  struct Progress {
    bool made = false;
    bool sent = false;
    bool posted = false;
    bool used = false;
  };

  [[nodiscard]] CheckResult check(const Value& value) const;

  Progress& of(const Value& value) { return progress_[rules_.index_of(value)]; }

  [[nodiscard]] const Progress& of(const Value& value) const {
    return progress_[rules_.index_of(value)];
  }

  const ActionRules& rules_;
  std::vector<Progress> progress_;  // [value]
  std::vector<int> posted_;         // [Rank]
  std::vector<int> unsent_;         // [Rank]
  std::vector<int> peak_posted_;
  std::vector<int> peak_unsent_;
};

}  // namespace motley
