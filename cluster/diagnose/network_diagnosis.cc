// The diagnosis of addresses, transports and links.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cluster/diagnose/diagnosis.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/workers.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// A link at less than half, or more than twice, the speed in the cluster file leads to other plans.
constexpr double kFarOff = 2;
constexpr double kLatencyMatters_s = 1e-3;

const AddressCandidate* candidate_of(const MachineFacts& facts, const std::string& address) {
  const auto found = std::ranges::find(facts.candidates, address, &AddressCandidate::address);
  return found == facts.candidates.end() ? nullptr : &*found;
}

// The route to the peer as the machine's system reports it; nullptr if it was not asked.
const RouteFound* route_to(const MachineFacts& facts, const Machine& peer) {
  const auto found = std::ranges::find(facts.routes, peer.address, &RouteFound::to);
  return found == facts.routes.end() ? nullptr : &*found;
}

// Interfaces that container and virtual machine software creates on the host. The other end of a
// veth is on the same machine.
bool is_of_containers(const AddressCandidate& candidate) {
  if (candidate.kind == "bridge") return true;
  return std::ranges::any_of(
      std::initializer_list<const char*>{"docker", "br-", "virbr", "veth", "cni", "podman", "lxc"},
      [&](const char* start) { return candidate.interface.starts_with(start); });
}

// Why other machines could not reach the machine at it; "" if they could, as far as can be seen
// there.
std::string out_of_reach(const AddressCandidate& candidate) {
  if (candidate.kind == "loopback") return "reachable only from the machine itself";
  if (!candidate.is_up) return "the interface is down or has no cable";
  if (is_of_containers(candidate)) return "it belongs to containers or virtual machines there";
  if (candidate.address.starts_with("fe80:"))
    return "link-local: not reachable from other machines";
  return "";
}

std::vector<std::string> peers_reached_from(const Cluster& cluster,
                                            const Machine& machine,
                                            const MachineFacts& facts,
                                            const std::string& address) {
  std::vector<std::string> names;
  for (const Machine& peer : cluster.machines) {
    if (peer.name == machine.name) continue;
    const RouteFound* route = route_to(facts, peer);
    if (route != nullptr && route->from == address) names.push_back(peer.name);
  }
  return names;
}

// A suggestion for an unusable address.
std::string better_address(const Cluster& cluster,
                           const Machine& machine,
                           const MachineFacts& facts) {
  for (const AddressCandidate& candidate : facts.candidates) {
    if (!out_of_reach(candidate).empty()) continue;
    const auto peers = peers_reached_from(cluster, machine, facts, candidate.address);
    if (peers.empty()) continue;
    return fmt::format("write address = \"{}\" ({}): the system routes to {} from it",
                       candidate.address, candidate.interface, fmt::join(peers, ", "));
  }
  return "write the machine's own numeric address on the network that joins the machines";
}

Finding address_problem(const Machine& machine,
                        std::string what,
                        std::string remedy,
                        ErrorCode code) {
  return {FindingLevel::kProblem, machine.name,      "address",
          std::move(what),        std::move(remedy), code};
}

std::vector<Finding> diagnose_routes(const Cluster& cluster,
                                     const Machine& machine,
                                     const MachineFacts& facts) {
  std::vector<Finding> findings;
  for (const Machine& peer : cluster.machines) {
    const RouteFound* route = peer.name == machine.name ? nullptr : route_to(facts, peer);
    if (route == nullptr) continue;
    const std::string where = fmt::format("{} -> {}", machine.name, peer.name);
    if (route->from.empty()) {
      findings.push_back({FindingLevel::kProblem, where, "route",
                          fmt::format("{} has no route to {}", machine.name, route->to),
                          "check both addresses in the cluster file, and that both machines are on "
                          "the same network or routed",
                          ErrorCode::kPeer});
    } else if (route->from != machine.address) {
      const AddressCandidate* way = candidate_of(facts, route->from);
      findings.push_back(
          {FindingLevel::kWarning, where, "route",
           fmt::format("the system routes from {} ({}), not from {}", route->from,
                       way != nullptr ? way->interface : "?", machine.address),
           "if that is the faster network, write its address into the cluster file"});
    }
  }
  return findings;
}

std::vector<Finding> diagnose_transport(const Cluster& cluster,
                                        const CommConfig& comm,
                                        const Inspection& inspection) {
  const auto choice = choose_transport(cluster, machine_names(cluster), comm);
  if (!choice.ok()) {
    return {{FindingLevel::kProblem, "all", "transport",
             fmt::format("{} ({})", choice.error().what, choice.error().cause),
             choice.error().remedy, choice.error().code}};
  }
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < cluster.machines.size(); ++i) {
    const auto& facts = inspection.machines[i].facts;
    if (!facts) continue;
    if (std::ranges::find(facts->transports, choice->kind) != facts->transports.end()) continue;
    findings.push_back({FindingLevel::kProblem, cluster.machines[i].name, "transport",
                        fmt::format("its build lacks transport '{}'; it has {}", choice->kind,
                                    fmt::join(facts->transports, ", ")),
                        "set comm.transport to one that all machines have, or build with it",
                        ErrorCode::kConfig});
  }
  if (findings.empty())
    findings.push_back({FindingLevel::kOk, "all", "transport", choice->reason, ""});
  return findings;
}

Finding assess_link(const Cluster& cluster, const MeasuredLink& link) {
  const LinkSpeed said = cluster.link(link.from, link.to);
  const double share = link.speed.bandwidth_bytes_per_s / said.bandwidth_bytes_per_s;
  Finding finding{
      FindingLevel::kOk, fmt::format("{} -> {}", link.from, link.to), "speed",
      fmt::format("{}, {:.0f} us one way", link_rate_text(link.speed.bandwidth_bytes_per_s),
                  link.speed.latency_s * 1e6),
      ""};
  // A simulated run is planned with the links of the cluster that it stands for.
  if (!capabilities_of(*cluster.find(link.from)).is_measured ||
      !capabilities_of(*cluster.find(link.to)).is_measured) {
    finding.level = FindingLevel::kNote;
    finding.what += fmt::format("; used by the simulated run, where the plan assumes {}",
                                link_rate_text(said.bandwidth_bytes_per_s));
    return finding;
  }
  constexpr const char* kMeasure =
      "motley probe --cluster FILE --output links.json measures all links; plan with --links "
      "links.json";
  if (share < 1 / kFarOff) {
    finding.level = FindingLevel::kWarning;
    finding.what += fmt::format(", {:.0f} % of the planned bandwidth", share * 100);
    finding.remedy = fmt::format("check for Wi-Fi, a bad cable or other traffic; {}", kMeasure);
  } else if (link.speed.latency_s > kLatencyMatters_s &&
             link.speed.latency_s > kFarOff * said.latency_s) {
    finding.level = FindingLevel::kWarning;
    finding.what += fmt::format(", planned: {:.0f} us", said.latency_s * 1e6);
    finding.remedy = kMeasure;
  } else if (share > kFarOff) {
    finding.level = FindingLevel::kNote;
    finding.what += fmt::format(", {:.1f} times the planned bandwidth", share);
    finding.remedy = kMeasure;
  }
  return finding;
}

}  // namespace

std::vector<AssessedAddress> assess_addresses(const Cluster& cluster,
                                              std::size_t index,
                                              const MachineFacts& facts) {
  const Machine& machine = cluster.machines[index];
  std::vector<AssessedAddress> assessed;
  for (const AddressCandidate& candidate : facts.candidates) {
    AssessedAddress& each = assessed.emplace_back();
    each.machine = machine.name;
    each.interface = candidate.interface;
    each.address = candidate.address;
    const auto peers = peers_reached_from(cluster, machine, facts, candidate.address);
    const std::string reaches =
        peers.empty() ? "" : fmt::format("the system routes to {} from it", fmt::join(peers, ", "));
    if (machine.address.empty()) {
      each.is_taken = candidate.kind == "loopback";
      each.why =
          each.is_taken ? "all processes are on this machine" : "no other machine has an address";
    } else if (candidate.address == machine.address) {
      each.is_taken = true;
      each.why = "the cluster file names it";
      if (!reaches.empty()) each.why += ", and " + reaches;
    } else {
      each.why = out_of_reach(candidate);
      if (each.why.empty()) {
        each.why = reaches.empty() ? "it has no route to a machine of the cluster"
                                   : reaches + ", but the cluster file names another";
      }
    }
  }
  return assessed;
}

std::vector<Finding> diagnose_address(const Cluster& cluster,
                                      std::size_t index,
                                      const MachineFacts& facts) {
  const Machine& machine = cluster.machines[index];
  if (machine.address.empty()) return {};
  const AddressCandidate* own = candidate_of(facts, machine.address);
  if (own == nullptr) {
    return {address_problem(machine, fmt::format("no interface there has {}", machine.address),
                            better_address(cluster, machine, facts), ErrorCode::kPeer)};
  }
  if (!machine.interface.empty() && own->interface != machine.interface) {
    return {address_problem(machine,
                            fmt::format("{} is on {}, but interface = \"{}\" in the cluster file",
                                        machine.address, own->interface, machine.interface),
                            "leave interface out, or set address to the one of that interface",
                            ErrorCode::kConfig)};
  }
  if (!own->is_up) {
    return {address_problem(
        machine, fmt::format("{}, with {}, is down or has no cable", own->interface, own->address),
        "plug it in, or " + better_address(cluster, machine, facts), ErrorCode::kPeer)};
  }
  std::vector<Finding> findings = diagnose_routes(cluster, machine, facts);
  if (own->kind == "wireless") {
    findings.push_back({FindingLevel::kNote, machine.name, "address",
                        fmt::format("{} on {}, which is wireless: its speed varies",
                                    machine.address, own->interface),
                        "use a cable if possible"});
  } else if (findings.empty()) {
    findings.push_back({FindingLevel::kOk, machine.name, "address",
                        fmt::format("{} on {}", machine.address, own->interface), ""});
  }
  return findings;
}

PairChoice choose_for_pair(const Cluster& cluster,
                           std::size_t from,
                           std::size_t to,
                           const CommConfig& comm) {
  PairChoice pair{cluster.machines[from].name, cluster.machines[to].name, "", ""};
  const auto choice = choose_transport(cluster, {pair.from, pair.to}, comm);
  if (!choice.ok()) {
    pair.why = choice.error().what;
    return pair;
  }
  pair.why = choice->reason;
  pair.transport = choice->encrypts() ? choice->kind + " with TLS" : choice->kind;
  return pair;
}

std::vector<Finding> diagnose_links(const Cluster& cluster,
                                    const CommConfig& comm,
                                    const Inspection& inspection) {
  std::vector<Finding> findings = diagnose_transport(cluster, comm, inspection);
  if (inspection.links_failure.has_value()) {
    const Error& failure = *inspection.links_failure;
    findings.push_back(
        {FindingLevel::kProblem, "all", "connect",
         fmt::format("{} ({})", failure.what, failure.cause),
         failure.remedy.empty() ? "allow the machines' programs in the firewalls" : failure.remedy,
         failure.code});
  }
  if (!inspection.links.has_value()) return findings;
  for (const MeasuredLink& link : inspection.links->links) {
    findings.push_back(assess_link(cluster, link));
  }
  return findings;
}

}  // namespace motley
