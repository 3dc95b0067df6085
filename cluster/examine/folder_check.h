// Whether a machine has a good place for its part of runs. A pure function.
#pragma once

#include <string>

#include "cluster/examine/diagnosis.h"
#include "cluster/examine/doctor.h"
#include "plan/cluster.h"
#include "protocol/machine_facts.h"

namespace motley {

// The launcher's folder, where the machine sees it, else one of its own. `facts` are of the folder
// that examine() asked for, `unwritable` as FirstAnswer has it. REQUIRES: the launcher could write
// into its folder.
[[nodiscard]] Finding judge_folder(const Machine& machine,
                                   const MachineFacts& facts,
                                   const std::string& unwritable,
                                   const DoctorOptions& asked);

}  // namespace motley
