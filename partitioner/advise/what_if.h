// What if: changes of machines and links, written as text, applied to what a plan is made from.
//
//   link.MACHINE.bandwidth_mbps=VALUE   all links of that machine to others, both ways
//   link.A.B.bandwidth_mbps=VALUE       the links between two machines, both ways
//   network.bandwidth_mbps=VALUE        the links without an entry of their own
//   … the same with latency_us
//   machine.NAME.memory_gib=VALUE       of all its devices together
//   machine.NAME.speed=FACTOR           2 = twice as fast
//   codec=CHAIN                         of every boundary between stages, as "fp16"
//   gradients=CHAIN                     of sums of gradients between machines, as "int8"
//   micro_batch=N                       samples that cross the stages at a time
//   drop=NAME, add=NAME                 without that machine; with another like it
//
// VALUE is a number, or x and a factor: "x2.5" is two and a half times what it is now.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/advise/planning_input.h"

namespace motley {

// Applies the changes in their order. kUsage, naming the text and what is possible, when one is not
// understood, names a machine that is not there, or gives an impossible value.
[[nodiscard]] Result<PlanningInput> apply_changes(PlanningInput input,
                                                  const std::vector<std::string>& changes);

// The sentences of pins on machines that the changes have taken away, which decide nothing any
// more; but that a machine is never used holds without it too.
[[nodiscard]] std::vector<std::string> pins_given_up(const PlanningInput& before,
                                                     const PlanningInput& after);

}  // namespace motley
