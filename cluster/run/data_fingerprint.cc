#include "cluster/run/data_fingerprint.h"

#include <fmt/format.h>

namespace motley {

DataFingerprint data_fingerprint(const DataIdentity& identity, const DataConfig& data) {
  const double holdout = data.holdout_path.empty() ? data.holdout : 0;
  return {data.kind, identity.bytes, identity.hash, holdout};
}

Result<void> check_same_data(const DataFingerprint& saved,
                             const DataIdentity& found,
                             const DataConfig& data) {
  if (data.changed == "accept") return {};
  if (saved.bytes == found.bytes && saved.hash == found.hash) return {};
  return Error{
      ErrorCode::kData,
      fmt::format("the data differs from the run's, {}", data.path.empty() ? data.kind : data.path),
      saved.bytes == found.bytes
          ? fmt::format("it has the same {} bytes, with other content", saved.bytes)
          : fmt::format("it has {} bytes; it had {}", found.bytes, saved.bytes),
      fmt::format("restore the data of the run, {}", kAllowChangesRemedy)};
}

}  // namespace motley
