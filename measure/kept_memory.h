// Whether the memory that a kept profile claims can be that of this model's layers: times are tried
// again before it is used, bytes are not.
#pragma once

#include <optional>
#include <string>

#include "models/spec/model_spec.h"
#include "plan/profile.h"

namespace motley {

// Why it cannot: "its layer gpt2.mlp(512) keeps 131072 GiB at 1 sample". Nothing where it can.
[[nodiscard]] std::optional<std::string> impossible_memory(const DeviceProfile& kept,
                                                           const ModelSpec& model);

}  // namespace motley
