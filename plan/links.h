// Links: the measured speeds of the links between machines, as a value.
// Format: docs/formats/links.md.
#pragma once

#include <map>
#include <optional>
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
  double jitter_p95_s = 0;  // how much later the slowest 5 % of small messages arrived
  // With both directions in use: 0 = each is as fast as alone (a cable); 1 = they alternate
  // (Wi-Fi). The same for both directions; nullopt if not measured.
  std::optional<double> turns;

  friend bool operator==(const MeasuredLink&, const MeasuredLink&) = default;
};

using Links = std::vector<MeasuredLink>;

[[nodiscard]] Json links_to_json(const Links& links);
// kCorrupt, with line and column, if `text` is not a links file of a supported version, or has
// impossible values.
[[nodiscard]] Result<Links> parse_links(std::string_view text, const std::string& source);

// Assigns a common name (Machine::medium) to the machines of each shared medium. A machine is on
// one if all its links are half-duplex. Two of them share it if bytes between them take as long as
// the paths of both to a third machine together.
[[nodiscard]] std::map<std::string, std::string> media_of(const Links& links);

// Replaces the cluster's speeds by measured ones, and its machines' media by those that the links
// show. If no link with a machine on a cable shows which machines are on a medium, the cluster file
// decides (docs/formats/links.md). Links with a machine that is not, or no longer, in the cluster
// only describe the other machine's network and medium. kConfig if all links are such.
[[nodiscard]] Result<void> apply_links(Cluster& cluster, const Links& links);

// "laptop: half duplex": a line for each medium that apply_links finds, with the cluster file's key
// to set if links cannot show which machines are on it.
[[nodiscard]] std::vector<std::string> media_lines(Cluster cluster, const Links& links);

}  // namespace motley
