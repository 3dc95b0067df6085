#include "plan/links.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "plan/json_fields.h"

namespace motley {
namespace {

constexpr const char* kLinksFormat = "motley.links";
constexpr int kLinksVersion = 1;
constexpr std::size_t kMeasuredLinksMax = 4096;  // 64 machines, each with each
constexpr double kBandwidthMin_bytes_per_s = 1;
constexpr double kBandwidthMax_bytes_per_s = 1e15;
constexpr double kLatencyMax_s = 60;

Result<MeasuredLink> read_link(const JsonFields& fields) {
  MeasuredLink link;
  MOTLEY_ASSIGN(link.from, fields.word("from", kMachineNameOthers));
  MOTLEY_ASSIGN(link.to, fields.word("to", kMachineNameOthers));
  if (link.from == link.to) return fields.bad("to", "both ends are the same machine");
  MOTLEY_ASSIGN(link.speed.bandwidth_bytes_per_s,
                fields.quantity("bandwidth_bytes_per_s", kBandwidthMax_bytes_per_s));
  if (link.speed.bandwidth_bytes_per_s < kBandwidthMin_bytes_per_s) {
    return fields.bad("bandwidth_bytes_per_s", "less than one byte a second");
  }
  MOTLEY_ASSIGN(link.speed.latency_s, fields.quantity("latency_s", kLatencyMax_s));
  MOTLEY_ASSIGN(link.jitter_p95_s, fields.quantity("jitter_p95_s", kLatencyMax_s));
  return link;
}

}  // namespace

Json links_to_json(const Links& links) {
  Json list = Json::array();
  for (const MeasuredLink& link : links) {
    list.push_back({{"from", link.from},
                    {"to", link.to},
                    {"bandwidth_bytes_per_s", link.speed.bandwidth_bytes_per_s},
                    {"latency_s", link.speed.latency_s},
                    {"jitter_p95_s", link.jitter_p95_s}});
  }
  return {{"format", kLinksFormat}, {"version", kLinksVersion}, {"links", std::move(list)}};
}

Result<Links> parse_links(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kLinksFormat, kLinksVersion));
  MOTLEY_ASSIGN(const auto items, fields.items("links", 0, kMeasuredLinksMax));
  Links links;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(MeasuredLink link, read_link(item));
    const bool known = std::any_of(links.begin(), links.end(), [&](const MeasuredLink& l) {
      return l.from == link.from && l.to == link.to;
    });
    if (known) return item.bad("this link stands in it twice");
    links.push_back(std::move(link));
  }
  return links;
}

Result<void> apply_links(Cluster& cluster, const Links& links) {
  for (const MeasuredLink& link : links) {
    for (const std::string& name : {link.from, link.to}) {
      if (cluster.find(name) != nullptr) continue;
      return Error{ErrorCode::kConfig, fmt::format("the measured links name machine {}", name),
                   "the cluster has no machine of this name", "measure again with motley probe"};
    }
    std::erase_if(cluster.links, [&](const LinkOverride& known) {
      return known.from == link.from && known.to == link.to;
    });
    cluster.links.push_back({link.from, link.to, link.speed});
  }
  return {};
}

}  // namespace motley
