#include "plan/links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/json/json_table.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

constexpr const char* kLinksFormat = "motley.links";
constexpr int kLinksVersion = 1;
constexpr std::size_t kMeasuredLinksMax = 65'536;  // 256 machines, all pairs
constexpr double kBandwidthMin_bytes_per_s = 1;
constexpr double kBandwidthMax_bytes_per_s = 1e15;
constexpr double kLatencyMax_s = 60;

constexpr auto kSpeedTable = json::table<LinkSpeed>(
    json::required("bandwidth_bytes_per_s",
                   &LinkSpeed::bandwidth_bytes_per_s,
                   json::quantity(kBandwidthMax_bytes_per_s)),
    json::check([](const JsonFields& fields, const LinkSpeed& speed) -> Result<void> {
      if (speed.bandwidth_bytes_per_s >= kBandwidthMin_bytes_per_s) return {};
      return fields.bad("bandwidth_bytes_per_s", "less than one byte a second");
    }),
    json::required("latency_s", &LinkSpeed::latency_s, json::quantity(kLatencyMax_s)));

constexpr auto kLinkTable = json::table<MeasuredLink>(
    json::required("from", &MeasuredLink::from, json::word(kMachineNameOthers)),
    json::required("to", &MeasuredLink::to, json::word(kMachineNameOthers)),
    json::check([](const JsonFields& fields, const MeasuredLink& link) -> Result<void> {
      if (link.from != link.to) return {};
      return fields.bad("to", "both ends are the same machine");
    }),
    json::part(&MeasuredLink::speed, kSpeedTable),
    json::required("jitter_p95_s", &MeasuredLink::jitter_p95_s, json::quantity(kLatencyMax_s)),
    json::optional("turns", &MeasuredLink::turns, json::quantity(1)));

Result<void> check_unique_link(const JsonFields& fields,
                               const Links& before,
                               const MeasuredLink& link) {
  const bool is_known = std::ranges::any_of(before, [&](const MeasuredLink& other) {
    return other.from == link.from && other.to == link.to;
  });
  return is_known ? Result<void>(fields.bad("duplicate link")) : Result<void>();
}

constexpr auto kLinks = json::list(kLinkTable, 0, kMeasuredLinksMax, check_unique_link);

// Whether the link is rather half-duplex than full-duplex. No radio is as fast as the limit: beyond
// it, the shared resource is the ends' processors and memory, as on one computer.
bool is_half_duplex(const MeasuredLink& link) {
  constexpr double kFastestRadio_bytes_per_s = 1.25e9;
  return link.turns.value_or(0) > 0.5 &&
         link.speed.bandwidth_bytes_per_s < kFastestRadio_bytes_per_s;
}

// The fastest link of a machine to or from machines with a cable; 0 if there is none.
double fastest_apart(const Links& links,
                     const std::set<std::string>& wireless,
                     const std::string& machine,
                     bool is_sender) {
  double fastest = 0;
  for (const MeasuredLink& link : links) {
    if ((is_sender ? link.from : link.to) != machine) continue;
    if (wireless.contains(is_sender ? link.to : link.from)) continue;
    fastest = std::max(fastest, link.speed.bandwidth_bytes_per_s);
  }
  return fastest;
}

// Bytes between two machines on one medium pass it twice, through its access point. Between two
// different media they pass both at once, and the slower one decides. Returns the closer case.
bool is_one_medium(const Links& links,
                   const std::set<std::string>& wireless,
                   const MeasuredLink& link) {
  const double up = fastest_apart(links, wireless, link.from, true);
  const double down = fastest_apart(links, wireless, link.to, false);
  if (up == 0 || down == 0) return true;
  const double in_turn = 1 / (1 / up + 1 / down);
  return link.speed.bandwidth_bytes_per_s < (in_turn + std::min(up, down)) / 2;
}

// Whether links show which of the medium's machines are on it: those that are also half-duplex with
// a machine on a cable. Otherwise one of two machines may have a cable, and be half-duplex only
// because the other has none; or a single machine beside others that are certainly on the medium.
bool shows_members(const Links& links,
                   const std::map<std::string, std::string>& media,
                   const std::string& medium) {
  std::set<std::string> members;
  for (const auto& [machine, its_medium] : media) {
    if (its_medium == medium) members.insert(machine);
  }
  std::set<std::string> shown;
  for (const MeasuredLink& link : links) {
    if (!link.turns) continue;
    if (members.contains(link.from) && !media.contains(link.to)) shown.insert(link.from);
    if (members.contains(link.to) && !media.contains(link.from)) shown.insert(link.to);
  }
  return shown == members;
}

// For machines that were found to share a medium. If the cluster file has a value for all but one,
// that one has a cable unless links show it on the medium. Of several machines without a value, all
// or all but one are on the medium; all are assumed to be.
void lay_medium(const std::string& medium, bool is_shown, const std::vector<Machine*>& members) {
  std::set<std::string> words;
  std::vector<Machine*> silent;
  for (Machine* const machine : members) {
    if (!machine->medium.empty()) words.insert(machine->medium);
    if (machine->medium.empty() && !machine->names_cable) silent.push_back(machine);
  }
  const bool have_cables = !words.empty() && silent.size() == 1 && !is_shown;
  const std::string& shared = words.size() == 1 ? *words.begin() : medium;
  for (Machine* const machine : silent) {
    if (!have_cables) machine->medium = shared;
    machine->medium_is_supposed = !is_shown && silent.size() == members.size();
  }
}

void lay_media(Cluster& cluster, const Links& links) {
  const std::map<std::string, std::string> media = media_of(links);
  std::map<std::string, std::vector<Machine*>> members;
  for (Machine& machine : cluster.machines) {
    const auto was_measured = [&](const MeasuredLink& link) {
      return link.turns && (link.from == machine.name || link.to == machine.name);
    };
    const auto medium = media.find(machine.name);
    if (medium != media.end()) {
      members[medium->second].push_back(&machine);
    } else if (std::ranges::any_of(links, was_measured)) {
      machine.medium.clear();
    }
  }
  for (const auto& [medium, machines] : members) {
    lay_medium(medium, shows_members(links, media, medium), machines);
  }
}

std::string medium_line(const std::vector<std::string>& machines, bool is_supposed) {
  const std::string names = fmt::format("{}", fmt::join(machines, ", "));
  if (machines.size() == 1) return names + ": half duplex";
  const std::string line = names + ": half duplex" + (is_supposed ? "" : " on one shared medium");
  if (!is_supposed) return line;
  return fmt::format(
      "{}: {} on Wi-Fi; medium = \"wifi\" in the cluster file, on {}, decides", line,
      machines.size() == 2 ? "one of them, or both, is" : "all of them, or all but one, are",
      machines.size() == 2 ? "the one or both" : "those that are");
}

}  // namespace

std::map<std::string, std::string> media_of(const Links& links) {
  std::set<std::string> wireless;
  for (const MeasuredLink& link : links) {
    if (is_half_duplex(link)) wireless.insert({link.from, link.to});
  }
  // A machine with a cable is recognised by its links to other machines with one.
  for (const MeasuredLink& link : links) {
    if (!link.turns || is_half_duplex(link)) continue;
    wireless.erase(link.from);
    wireless.erase(link.to);
  }
  std::map<std::string, std::string> media;
  for (const std::string& name : wireless) media[name] = name;
  for (const MeasuredLink& link : links) {
    if (!media.contains(link.from) || !media.contains(link.to)) continue;
    if (!is_one_medium(links, wireless, link)) continue;
    const std::string joined = media[link.to];
    for (auto& [name, medium] : media) {
      if (medium == joined) medium = media[link.from];
    }
  }
  return media;
}

Json links_to_json(const Links& links) {
  return {{"format", kLinksFormat}, {"version", kLinksVersion}, {"links", kLinks.write(links)}};
}

Result<Links> parse_links(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kLinksFormat, kLinksVersion));
  MOTLEY_ASSIGN(const JsonFields list, fields.member("links"));
  Links links;
  MOTLEY_TRY(kLinks.read(list, links));
  return links;
}

Result<void> apply_links(Cluster& cluster, const Links& links) {
  const auto joins_two_of_it = [&](const MeasuredLink& link) {
    return cluster.find(link.from) != nullptr && cluster.find(link.to) != nullptr;
  };
  if (cluster.machines.size() > 1 && !links.empty() &&
      std::ranges::none_of(links, joins_two_of_it)) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("no measured link is between two machines of the cluster (the first is "
                    "{} → {})",
                    links.front().from, links.front().to),
        "they were measured in another cluster, or the machines were renamed",
        "measure again with motley probe"};
  }
  for (const MeasuredLink& link : links) {
    if (cluster.find(link.from) == nullptr && cluster.find(link.to) == nullptr) continue;
    std::erase_if(cluster.links, [&](const LinkOverride& known) {
      return known.from == link.from && known.to == link.to;
    });
    cluster.links.push_back({link.from, link.to, link.speed});
  }
  lay_media(cluster, links);
  return {};
}

std::vector<std::string> media_lines(Cluster cluster, const Links& links) {
  lay_media(cluster, links);
  const std::map<std::string, std::string> found = media_of(links);
  std::map<std::string, std::vector<std::string>> members;
  std::set<std::string> supposed;
  for (const Machine& machine : cluster.machines) {
    if (machine.medium.empty() || !found.contains(machine.name)) continue;
    members[machine.medium].push_back(machine.name);
    if (machine.medium_is_supposed) supposed.insert(machine.medium);
  }
  std::vector<std::string> lines;
  for (const auto& [medium, machines] : members) {
    lines.push_back(medium_line(machines, supposed.contains(medium)));
  }
  return lines;
}

}  // namespace motley
