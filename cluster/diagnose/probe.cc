#include "cluster/diagnose/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/json.h"
#include "cluster/launch/event_fields.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

Result<TransportChoice> choose_for_all(const Cluster& cluster, const CommConfig& comm) {
  const std::size_t count = cluster.machines.size();
  if (count < 2 || count > kProbedMachinesMax) {
    return Error{ErrorCode::kConfig, fmt::format("the cluster has {} machine(s)", count),
                 fmt::format("a probe measures links between 2 to {}", kProbedMachinesMax),
                 "give a cluster file with the machines to measure by --cluster"};
  }
  return choose_transport(cluster, machine_names(cluster), comm);
}

std::vector<WorkerSpec> probe_workers(const Cluster& cluster,
                                      const ProbeOptions& options,
                                      const std::filesystem::path& program) {
  Json addresses = Json::array();
  for (const Machine& machine : cluster.machines) addresses.push_back(machine.address);
  std::vector<WorkerSpec> workers;
  for (const Machine& machine : cluster.machines) {
    WorkerSpec worker{
        fmt::format("probe of {}", machine.name), machine, stage_program_on(machine, program), {}};
    worker.job.verb = "probe";
    worker.job.bind_address = machine.address;
    worker.job.interface = machine.interface;
    worker.job.options =
        Json{{"rank", workers.size()}, {"machines", addresses}, {"seconds", options.seconds}};
    workers.push_back(std::move(worker));
  }
  return workers;
}

// Combines the reports of both ends of each pair.
class ProbeFollower {
 public:
  ProbeFollower(const Cluster& cluster,
                const std::string& transport,
                std::function<void(std::size_t, std::size_t)> on_link)
      : cluster_(cluster), on_link_(std::move(on_link)) {
    report_.transport = transport;
    report_.networks.resize(cluster.machines.size());
    for (const Machine& from : cluster.machines) {
      for (const Machine& to : cluster.machines) {
        if (from.name != to.name) report_.links.push_back({from.name, to.name, {0, 0}, 0, {}});
      }
    }
    report_.cpu.resize(report_.links.size());
  }

  Result<void> on_event(int worker, const Json& event) {
    const auto self = static_cast<std::size_t>(worker);
    const std::string source = fmt::format("the probe of {}", cluster_.machines[self].name);
    MOTLEY_ASSIGN(const std::string kind, json_get<std::string>(event, "event", source));
    if (kind == "network") {
      MOTLEY_ASSIGN(report_.networks[self], json_get<std::string>(event, "text", source));
    } else if (kind == "link") {
      MOTLEY_ASSIGN(const std::size_t to, peer_of(event, "to", self, source));
      const std::size_t index = index_of(self, to);
      MeasuredLink& link = report_.links[index];
      MOTLEY_ASSIGN(link.speed.bandwidth_bytes_per_s,
                    event_quantity(event, "bandwidth_bytes_per_s", source));
      MOTLEY_ASSIGN(link.speed.latency_s, event_quantity(event, "latency_s", source));
      MOTLEY_ASSIGN(link.jitter_p95_s, event_quantity(event, "jitter_p95_s", source));
      MOTLEY_ASSIGN(report_.cpu[index].send_s_per_byte,
                    event_quantity(event, "cpu_s_per_byte", source));
      if (on_link_) on_link_(measured(), report_.links.size());
    } else if (kind == "served") {
      MOTLEY_ASSIGN(const std::size_t from, peer_of(event, "from", self, source));
      MOTLEY_ASSIGN(report_.cpu[index_of(from, self)].receive_s_per_byte,
                    event_quantity(event, "cpu_s_per_byte", source));
    } else if (kind == "both_ways") {
      MOTLEY_ASSIGN(const std::size_t peer, peer_of(event, "with", self, source));
      PairTimes& pair = pairs_[std::minmax(self, peer)];
      MOTLEY_ASSIGN(const double alone_s, event_quantity(event, "alone_s", source));
      MOTLEY_ASSIGN(const double together_s, event_quantity(event, "together_s", source));
      (self < peer ? pair.alone_s : pair.back_alone_s) = alone_s;
      pair.together_s = std::max(pair.together_s, together_s);
      const std::optional<double> turns = pair.turns();
      report_.links[index_of(self, peer)].turns = turns;
      report_.links[index_of(peer, self)].turns = turns;
    }
    return {};
  }

  Result<ProbeReport> finish() {
    for (const MeasuredLink& link : report_.links) {
      if (link.speed.bandwidth_bytes_per_s > 0) continue;
      return Error{ErrorCode::kInternal,
                   fmt::format("the link from {} to {} was not measured", link.from, link.to), "",
                   ""};
    }
    return std::move(report_);
  }

 private:
  // For a pair whose ends sent to each other at the same time.
  struct PairTimes {
    double alone_s = 0;  // of each end's message; 0 = not reported yet
    double back_alone_s = 0;
    double together_s = 0;  // of both

    [[nodiscard]] std::optional<double> turns() const {
      const double shorter_s = std::min(alone_s, back_alone_s);
      if (shorter_s <= 0) return std::nullopt;
      return std::clamp((together_s - std::max(alone_s, back_alone_s)) / shorter_s, 0.0, 1.0);
    }
  };

  // Links are in the order of (from, to), without pairs of a machine with itself.
  [[nodiscard]] std::size_t index_of(std::size_t from, std::size_t to) const {
    return from * (cluster_.machines.size() - 1) + to - (to > from ? 1 : 0);
  }

  [[nodiscard]] Result<std::size_t> peer_of(const Json& event,
                                            const char* key,
                                            std::size_t self,
                                            const std::string& source) const {
    MOTLEY_ASSIGN(const std::size_t peer,
                  event_index(event, key, cluster_.machines.size(), source));
    if (peer != self) return peer;
    return event_error(source, fmt::format("{} = {}", key, peer), "that is the rank itself");
  }

  [[nodiscard]] std::size_t measured() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        report_.links, [](const MeasuredLink& l) { return l.speed.bandwidth_bytes_per_s > 0; }));
  }

  const Cluster& cluster_;
  const std::function<void(std::size_t, std::size_t)> on_link_;
  ProbeReport report_;
  // The machine with the lower index first.
  std::map<std::pair<std::size_t, std::size_t>, PairTimes> pairs_;
};

}  // namespace

Result<ProbeReport> probe_links(const Cluster& cluster,
                                const ProbeOptions& options,
                                const std::filesystem::path& program,
                                const Log& log) {
  MOTLEY_ASSIGN(const TransportChoice transport, choose_for_all(cluster, options.comm));
  MOTLEY_TRY(check_reachable(cluster, machine_names(cluster), program));
  auto workers = probe_workers(cluster, options, program);
  MOTLEY_TRY(apply_transport(transport, workers));
  ProbeFollower follower(cluster, transport.reason, options.on_link);
  WorkerGroup group(std::move(workers),
                    {.start_timeout_s = options.comm.start_timeout_s,
                     .patience_s = options.comm.patience_s,
                     .before_log = options.before_log},
                    log);
  MOTLEY_TRY(
      group.run([&](int worker, const Json& event) { return follower.on_event(worker, event); }));
  return follower.finish();
}

}  // namespace motley
