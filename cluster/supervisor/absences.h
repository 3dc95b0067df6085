// Absences: the machines that a run continues without, with the history of their losses.
//
// Used by one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/supervisor/decide_return.h"
#include "cluster/supervisor/restart_policy.h"

namespace motley {

class Absences {
 public:
  // The next launch does without these machines. Those that the last launch had count as lost now.
  void set(std::vector<std::string> without, double now_s, const RestartPolicy& policy);

  // The machines that the last launch did without.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  // The same with their history.
  [[nodiscard]] std::vector<AbsentMachine> absent() const;

 private:
  const ReturnRules rules_;
  std::vector<std::string> left_out_;
  std::map<std::string, AbsentMachine> losses_;  // by machine; also of machines that are back
};

}  // namespace motley
