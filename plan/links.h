// Links: how fast the links between machines were found to be, as a value.
// Format: docs/formats/links.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// One direction between two machines.
struct MeasuredLink {
  std::string from;
  std::string to;
  LinkSpeed speed;
  double jitter_p95_s = 0;  // by how much the slowest twentieth of small messages was later

  friend bool operator==(const MeasuredLink&, const MeasuredLink&) = default;
};

using Links = std::vector<MeasuredLink>;

[[nodiscard]] Json links_to_json(const Links& links);
// kCorrupt, with line and column, when `text` is not a links file of a version we read, or holds
// impossible values.
[[nodiscard]] Result<Links> parse_links(std::string_view text, const std::string& source);

// Lays measured speeds over those of the cluster. kConfig when they name a machine that the cluster
// lacks.
[[nodiscard]] Result<void> apply_links(Cluster& cluster, const Links& links);

}  // namespace motley
