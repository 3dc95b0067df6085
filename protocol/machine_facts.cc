#include "protocol/machine_facts.h"

#include "base/json/json_table.h"

namespace motley {
namespace {

constexpr std::size_t kCandidatesMax = 1024;
constexpr std::size_t kRoutesMax = 4096;
constexpr std::size_t kTransportsMax = 16;
constexpr std::int64_t kCoresMax = 1 << 20;

// The members of DevicesFound.
struct Devices {
  void write_into(const DevicesFound& found, Json& object) const {
    object.update(devices_to_json(found));
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, DevicesFound& found) const {
    MOTLEY_ASSIGN(found, devices_from_json(object));
    return {};
  }
};

constexpr auto kCandidateTable = json::table<AddressCandidate>(
    json::required("interface", &AddressCandidate::interface, json::text()),
    json::required("address", &AddressCandidate::address, json::text()),
    json::required("kind", &AddressCandidate::kind, json::text()),
    json::required("is_up", &AddressCandidate::is_up, json::flag()),
    json::required("mbps", &AddressCandidate::mbps, json::whole()));

constexpr auto kRouteTable =
    json::table<RouteFound>(json::required("to", &RouteFound::to, json::text()),
                            json::required("from", &RouteFound::from, json::text()));

constexpr auto kFactsTable = json::table<MachineFacts>(
    json::part(&MachineFacts::found, Devices{}),
    json::required("version", &MachineFacts::version, json::text()),
    json::required("build", &MachineFacts::build, json::text()),
    json::required("blas", &MachineFacts::blas, json::text()),
    json::required(
        "transports", &MachineFacts::transports, json::list(json::text(), 0, kTransportsMax)),
    json::required("cores", &MachineFacts::cores, json::quantity()),
    json::required("physical_cores", &MachineFacts::physical_cores, json::whole(1, kCoresMax)),
    json::required("memory_bytes", &MachineFacts::memory_bytes, json::whole()),
    json::required("computer", &MachineFacts::computer, json::text()),
    json::required("computer_memory_bytes", &MachineFacts::computer_memory_bytes, json::whole()),
    json::required("disk_bytes", &MachineFacts::disk_bytes, json::whole()),
    json::required("unix_s", &MachineFacts::unix_s, json::quantity()),
    json::required("sees_mark", &MachineFacts::sees_mark_file, json::flag()),
    json::required(
        "candidates", &MachineFacts::candidates, json::list(kCandidateTable, 0, kCandidatesMax)),
    json::required("routes", &MachineFacts::routes, json::list(kRouteTable, 0, kRoutesMax)));

}  // namespace

Json facts_to_json(const MachineFacts& facts) {
  return kFactsTable.write(facts);
}

Result<MachineFacts> facts_from_json(const Json& json, const std::string& source) {
  const JsonSource named(source);
  return kFactsTable.read(JsonFields(json, named, ErrorCode::kPeer));
}

}  // namespace motley
