// Starts or resumes a run at the user's command.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"

namespace motley {

// Calls prepare_run(). A resume continues without machines that do not answer if the supervisor
// would exclude them too (cluster/supervisor/decide.h), and only from the newest checkpoint: the
// user may prefer to switch a machine on instead of repeating steps. In all other cases a machine
// that does not answer is an error. A given plan needs all of its machines.
[[nodiscard]] Result<Launch> begin_run(const TrainingRequest& request, Log& log);

}  // namespace motley
