// Checks that a machine has a suitable folder for its part of a run. A pure function.
#pragma once

#include <string>

#include "cluster/diagnose/diagnosis.h"
#include "cluster/diagnose/doctor.h"
#include "plan/cluster.h"
#include "protocol/machine_facts.h"

namespace motley {

// The launcher's folder if the machine sees it, else one of its own. `facts` are those of the
// folder that inspect() asked for, `unwritable` as in FirstResponse. REQUIRES: the launcher could
// write to its folder.
[[nodiscard]] Finding assess_folder(const Machine& machine,
                                    const MachineFacts& facts,
                                    const std::string& unwritable,
                                    const DoctorOptions& asked);

}  // namespace motley
