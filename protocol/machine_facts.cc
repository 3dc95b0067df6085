#include "protocol/machine_facts.h"

#include <limits>

#include "base/json_fields.h"

namespace motley {
namespace {

constexpr std::size_t kCandidatesMax = 1024;
constexpr std::size_t kRoutesMax = 4096;
constexpr std::size_t kTransportsMax = 16;

Result<AddressCandidate> read_candidate(const JsonFields& fields) {
  AddressCandidate candidate;
  MOTLEY_ASSIGN(candidate.interface, fields.text("interface"));
  MOTLEY_ASSIGN(candidate.address, fields.text("address"));
  MOTLEY_ASSIGN(candidate.kind, fields.text("kind"));
  MOTLEY_ASSIGN(candidate.is_up, fields.boolean("is_up"));
  MOTLEY_ASSIGN(const std::int64_t mbps,
                fields.integer("mbps", 0, std::numeric_limits<int>::max()));
  candidate.mbps = static_cast<int>(mbps);
  return candidate;
}

Result<RouteFound> read_route(const JsonFields& fields) {
  RouteFound route;
  MOTLEY_ASSIGN(route.to, fields.text("to"));
  MOTLEY_ASSIGN(route.from, fields.text("from"));
  return route;
}

}  // namespace

Json facts_to_json(const MachineFacts& facts) {
  Json candidates = Json::array();
  for (const AddressCandidate& each : facts.candidates) {
    candidates.push_back({{"interface", each.interface},
                          {"address", each.address},
                          {"kind", each.kind},
                          {"is_up", each.is_up},
                          {"mbps", each.mbps}});
  }
  Json routes = Json::array();
  for (const RouteFound& each : facts.routes) {
    routes.push_back({{"to", each.to}, {"from", each.from}});
  }
  Json json = devices_to_json(facts.found);
  json.update({{"version", facts.version},
               {"build", facts.build},
               {"blas", facts.blas},
               {"transports", facts.transports},
               {"cores", facts.cores},
               {"physical_cores", facts.physical_cores},
               {"memory_bytes", facts.memory_bytes},
               {"computer", facts.computer},
               {"computer_memory_bytes", facts.computer_memory_bytes},
               {"disk_bytes", facts.disk_bytes},
               {"unix_s", facts.unix_s},
               {"sees_mark", facts.sees_mark_file},
               {"candidates", candidates},
               {"routes", routes}});
  return json;
}

Result<MachineFacts> facts_from_json(const Json& json, const std::string& source) {
  constexpr std::int64_t kBytesMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kCoresMax = 1 << 20;
  const JsonSource named(source);
  const JsonFields fields(json, named, ErrorCode::kPeer);
  MachineFacts facts;
  MOTLEY_ASSIGN(facts.version, fields.text("version"));
  MOTLEY_ASSIGN(facts.build, fields.text("build"));
  MOTLEY_ASSIGN(facts.blas, fields.text("blas"));
  MOTLEY_ASSIGN(facts.transports, fields.texts("transports", kTransportsMax));
  MOTLEY_ASSIGN(facts.found, devices_from_json(fields));
  MOTLEY_ASSIGN(facts.cores, fields.quantity("cores"));
  MOTLEY_ASSIGN(const std::int64_t physical, fields.integer("physical_cores", 1, kCoresMax));
  facts.physical_cores = static_cast<int>(physical);
  MOTLEY_ASSIGN(facts.memory_bytes, fields.integer("memory_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(facts.computer, fields.text("computer"));
  MOTLEY_ASSIGN(facts.computer_memory_bytes, fields.integer("computer_memory_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(facts.disk_bytes, fields.integer("disk_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(facts.unix_s, fields.quantity("unix_s"));
  MOTLEY_ASSIGN(facts.sees_mark_file, fields.boolean("sees_mark"));
  MOTLEY_ASSIGN(const auto candidates, fields.items("candidates", 0, kCandidatesMax));
  for (const JsonFields& item : candidates) {
    MOTLEY_ASSIGN(AddressCandidate candidate, read_candidate(item));
    facts.candidates.push_back(std::move(candidate));
  }
  MOTLEY_ASSIGN(const auto routes, fields.items("routes", 0, kRoutesMax));
  for (const JsonFields& item : routes) {
    MOTLEY_ASSIGN(RouteFound route, read_route(item));
    facts.routes.push_back(std::move(route));
  }
  return facts;
}

}  // namespace motley
