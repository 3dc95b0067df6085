// What a launch may learn of its plan, and from what.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "cluster/learn/adaptation.h"
#include "cluster/run/prepare.h"

namespace motley {

// Of the launch that starts now, never null. It learns nothing where the request says so, on
// virtual devices, and where no profile is known. Both must outlive it. Errors of plan_options().
[[nodiscard]] Result<std::unique_ptr<Adaptation>> adaptation_of(const PreparedRun& run,
                                                                const TrainingRequest& request,
                                                                const Log& log);

}  // namespace motley
