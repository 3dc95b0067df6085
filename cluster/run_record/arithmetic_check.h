// ArithmeticCheck: whether the machines of a run round alike. Processors add up matrix products in
// an order that depends on the libraries and the instruction sets in use, so two that differ
// compute other last bits (docs/numerics.md). Accelerators are known to differ, and are not
// compared.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "plan/plan.h"

namespace motley {

// One owner thread.
class ArithmeticCheck {
 public:
  explicit ArithmeticCheck(const Plan& plan);

  // `text`: what decides the rounding on the rank's machine, as its worker reports it. Returns a
  // message, once, when the last rank on a processor has reported and they differ. REQUIRES: a rank
  // of the plan.
  [[nodiscard]] std::optional<std::string> add(Rank rank, const std::string& text);

 private:
  [[nodiscard]] std::string differences() const;

  const Plan& plan_;
  std::set<Rank> awaited_;                               // on processors
  std::map<std::string, std::set<std::string>> having_;  // text → machines
};

}  // namespace motley
