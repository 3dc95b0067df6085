// The data as the machines of a run see it, where the launcher does not.
#pragma once

#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/prepare/check_request.h"

namespace motley {

// Starts a worker on each of the run's machines, which reads the data if it is there; nothing if it
// is on none, whose reasons are logged. kData if they do not read the same; otherwise as
// WorkerGroup::run().
[[nodiscard]] Result<std::optional<SeenData>> ask_for_data(const TrainingRequest& request,
                                                           const CheckedRequest& checked,
                                                           const Log& log);

}  // namespace motley
