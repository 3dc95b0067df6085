// Checks whether the memory in a stored profile is plausible for this model's layers. Times are
// sampled again before a profile is used; byte counts are not.
#pragma once

#include <optional>
#include <string>

#include "models/spec/model_spec.h"
#include "plan/profile.h"

namespace motley {

// The reason if it is not: "its layer gpt2.mlp(512) keeps 131072 GiB at 1 sample". Nothing if it
// is.
[[nodiscard]] std::optional<std::string> impossible_memory(const DeviceProfile& stored,
                                                           const ModelSpec& model);

}  // namespace motley
