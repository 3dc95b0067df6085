// A run that a person starts or resumes.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/prepare.h"

namespace motley {

// prepare_run(). What is resumed goes on without machines that do not answer, where a run that
// trains would leave them out too (cluster/recover/decide.h), and only from its newest checkpoint:
// the person may rather switch a machine on than do steps again. Else a machine that does not
// answer is an error. A plan that is given needs all of its machines.
[[nodiscard]] Result<PreparedRun> begin_run(const TrainingRequest& request, Log& log);

}  // namespace motley
