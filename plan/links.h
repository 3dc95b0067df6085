// Links: how fast the links between machines were found to be, as a value.
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
  double jitter_p95_s = 0;  // by how much the slowest twentieth of small messages was later
  // With the other direction in use at the same time: 0 = both are as fast as each alone, as over a
  // cable; 1 = they take turns, as over Wi-Fi. The same for both; nothing where it was not
  // measured.
  std::optional<double> turns;

  friend bool operator==(const MeasuredLink&, const MeasuredLink&) = default;
};

using Links = std::vector<MeasuredLink>;

[[nodiscard]] Json links_to_json(const Links& links);
// kCorrupt, with line and column, when `text` is not a links file of a version we read, or holds
// impossible values.
[[nodiscard]] Result<Links> parse_links(std::string_view text, const std::string& source);

// Which machines share a medium, by the names that they then have in common (Machine::medium):
// those both of whose directions take turns whomever they reach, and of these in one those between
// which bytes take as long as the ways of both to somebody else together.
[[nodiscard]] std::map<std::string, std::string> media_of(const Links& links);

// Lays measured speeds over those of the cluster, and the media that the links show over its
// machines' where links tell; of machines that share one and that no link with a machine on a cable
// shows to be on it, the cluster file decides (docs/formats/links.md). Links with a machine that
// the cluster lacks, or no longer has, tell only of the other's network and medium. kConfig when
// all are such.
[[nodiscard]] Result<void> apply_links(Cluster& cluster, const Links& links);

// "laptop: what it sends and receives takes turns": a line for each medium that apply_links finds,
// with what to write into the cluster file where links cannot tell who is on it.
[[nodiscard]] std::vector<std::string> media_lines(Cluster cluster, const Links& links);

}  // namespace motley
