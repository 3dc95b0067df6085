// Under which key this worker's device keeps its profile.
#pragma once

#include "measure/profile_store.h"
#include "models/spec/model_spec.h"
#include "protocol/protocol.h"

namespace motley {

[[nodiscard]] ProfileKey profile_key(const Job& job, const ModelSpec& model);

}  // namespace motley
