// What-if changes of machines, links and settings, written as text and applied to a plan's inputs.
//
//   link.MACHINE.bandwidth_mbps=VALUE   all links of that machine to others, both ways
//   link.A.B.bandwidth_mbps=VALUE       the links between two machines, both ways
//   network.bandwidth_mbps=VALUE        the links without an entry of their own
//   … the same with latency_us
//   machine.NAME.memory_gib=VALUE       of all its devices together
//   machine.NAME.speed=FACTOR           2 = twice as fast
//   machine.NAME.medium=WORD            "wifi" = a shared medium, "cable" = full-duplex links
//   codec=CHAIN                         of every boundary between stages, such as "fp16"
//   gradients=CHAIN                     of all-reduces between machines, such as "int8"
//   micro_batch=N                       samples in a micro-batch
//   drop=NAME, add=NAME                 without that machine; with another like it
//
// VALUE is a number, or x and a factor: "x2.5" is two and a half times the current value.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/report/planning_input.h"

namespace motley {

// Applies the changes in their order. kUsage, naming the text and the valid forms, if one is
// malformed, names an unknown machine, or has an invalid value.
[[nodiscard]] Result<PlanningInput> apply_changes(PlanningInput input,
                                                  const std::vector<std::string>& changes);

// Messages about pins on machines that the changes have removed, which have no effect any more.
// `never` pins are not among them: they still hold.
[[nodiscard]] std::vector<std::string> dropped_pins(const PlanningInput& before,
                                                    const PlanningInput& after);

}  // namespace motley
