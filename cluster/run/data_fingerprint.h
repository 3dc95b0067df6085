// Whether a resumed run reads the same data. Pure functions.
#pragma once

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "data/source.h"
#include "run_config/config.h"

namespace motley {

// The end of the remedies of refused changes.
inline constexpr const char* kAllowChangesRemedy = "or add --allow-changes to continue with it";

[[nodiscard]] DataFingerprint data_fingerprint(const DataIdentity& identity,
                                               const DataConfig& data);

// Checks that the data is the run's. kData, with both, if it is not and data.changed refuses a
// change.
[[nodiscard]] Result<void> check_same_data(const DataFingerprint& saved,
                                           const DataIdentity& found,
                                           const DataConfig& data);

}  // namespace motley
