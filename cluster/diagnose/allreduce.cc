#include "cluster/diagnose/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/median.h"
#include "cluster/launch/event_fields.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "compression/feedback/gradient_compressor.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

// One worker per device, numbered machine by machine.
Result<std::vector<WorkerSpec>> allreduce_workers(const Cluster& cluster,
                                                  const AllreduceOptions& options,
                                                  const std::filesystem::path& program) {
  Json rank_counts = Json::array();
  for (const Machine& machine : cluster.machines) rank_counts.push_back(machine.devices.size());
  std::vector<WorkerSpec> workers;
  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      WorkerSpec worker{fmt::format("rank {} ({})", workers.size(), machine.name),
                        machine,
                        stage_program_on(machine, program),
                        {}};
      worker.job.verb = "allreduce";
      worker.job.bind_address = machine.address;
      worker.job.interface = machine.interface;
      worker.job.device = device;
      worker.job.options = Json{{"rank", workers.size()},
                                {"machines", rank_counts},
                                {"codecs", options.codecs},
                                {"values", options.values},
                                {"runs", options.runs}};
      workers.push_back(std::move(worker));
    }
  }
  if (workers.size() >= 2 && workers.size() <= kSummingRanksMax) return workers;
  return Error{ErrorCode::kConfig, fmt::format("the cluster has {} device(s)", workers.size()),
               fmt::format("an all-reduce needs 2 to {}, one process each", kSummingRanksMax),
               "give a cluster file with the machines to measure by --cluster"};
}

// Combines the ranks' reports for each codec.
class AllreduceFollower {
 public:
  AllreduceFollower(const Cluster& cluster, const AllreduceOptions& options)
      : cluster_(cluster), options_(options), slowest_(options.codecs.size()) {
    for (std::size_t machine = 0; machine < cluster.machines.size(); ++machine) {
      machine_of_.insert(machine_of_.end(), cluster.machines[machine].devices.size(), machine);
    }
    for (const std::string& codec : options.codecs) {
      AllreduceFigures& each = figures_.emplace_back();
      each.codec = codec;
      each.uplink_bytes.resize(cluster.machines.size());
    }
  }

  Result<void> on_event(int worker, const Json& event) {
    const std::string source = fmt::format("rank {}", worker);
    MOTLEY_ASSIGN(const std::string kind, json_get<std::string>(event, "event", source));
    if (kind != "sum") return {};
    MOTLEY_ASSIGN(const std::size_t codec,
                  event_index(event, "codec", options_.codecs.size(), source));
    AllreduceFigures& figures = figures_[codec];
    MOTLEY_TRY(take_runs(event, codec, source));
    MOTLEY_ASSIGN(const double bytes, event_quantity(event, "bytes_out", source));
    figures.uplink_bytes[machine_of_[static_cast<std::size_t>(worker)]] += bytes;
    MOTLEY_ASSIGN(const double cpu_s, event_quantity(event, "cpu_s", source));
    figures.cpu_s += cpu_s;
    MOTLEY_ASSIGN(const double error, event_quantity(event, "largest_error", source));
    figures.largest_error = std::max(figures.largest_error, error);
    MOTLEY_ASSIGN(const double lost, event_quantity(event, "lost_error", source));
    figures.lost_error = std::max(figures.lost_error, lost);
    return {};
  }

  Result<std::vector<AllreduceFigures>> finish() {
    for (std::size_t codec = 0; codec < figures_.size(); ++codec) {
      if (slowest_[codec].empty()) {
        return Error{ErrorCode::kInternal,
                     fmt::format("no rank measured '{}'", figures_[codec].codec), "", ""};
      }
      figures_[codec].allreduce_s = median(std::move(slowest_[codec]));
      figures_[codec].bound_s = allreduce_bound_s(cluster_, figures_[codec].uplink_bytes);
    }
    return std::move(figures_);
  }

 private:
  Result<void> take_runs(const Json& event, std::size_t codec, const std::string& source) {
    const Json runs = event.value("runs_s", Json::array());
    if (!runs.is_array() || runs.size() != static_cast<std::size_t>(options_.runs)) {
      return event_error(source, fmt::format("runs_s = {}", excerpt(runs.dump())),
                         fmt::format("{} runs were requested", options_.runs));
    }
    std::vector<double>& slowest = slowest_[codec];
    slowest.resize(runs.size());
    for (std::size_t run = 0; run < runs.size(); ++run) {
      MOTLEY_ASSIGN(const double run_s,
                    event_quantity(Json::object({{"run_s", runs[run]}}), "run_s", source));
      slowest[run] = std::max(slowest[run], run_s);
    }
    return {};
  }

  const Cluster& cluster_;
  const AllreduceOptions& options_;
  std::vector<std::size_t> machine_of_;       // [worker]
  std::vector<AllreduceFigures> figures_;     // [codec]
  std::vector<std::vector<double>> slowest_;  // [codec][run], over the ranks that have reported
};

}  // namespace

double allreduce_bound_s(const Cluster& cluster, const std::vector<double>& uplink_bytes) {
  double bound_s = 0;
  for (std::size_t machine = 0; machine < uplink_bytes.size(); ++machine) {
    if (uplink_bytes[machine] == 0) continue;
    double out_bytes_per_s = 0;
    double in_bytes_per_s = 0;
    const std::string& self = cluster.machines[machine].name;
    for (const Machine& peer : cluster.machines) {
      if (peer.name == self) continue;
      out_bytes_per_s =
          std::max(out_bytes_per_s, cluster.link(self, peer.name).bandwidth_bytes_per_s);
      in_bytes_per_s =
          std::max(in_bytes_per_s, cluster.link(peer.name, self).bandwidth_bytes_per_s);
    }
    bound_s = std::max(bound_s, uplink_bytes[machine] / std::min(out_bytes_per_s, in_bytes_per_s));
  }
  return bound_s;
}

Result<std::vector<AllreduceFigures>> measure_allreduces(const Cluster& cluster,
                                                         const AllreduceOptions& options,
                                                         const std::filesystem::path& program,
                                                         const Log& log) {
  for (const std::string& chain : options.codecs) {
    MOTLEY_ASSIGN([[maybe_unused]] const auto codec, make_gradient_codec({.chain = chain}));
  }
  MOTLEY_ASSIGN(auto workers, allreduce_workers(cluster, options, program));
  MOTLEY_ASSIGN(const TransportChoice transport,
                choose_transport(cluster, machine_names(cluster), options.comm));
  MOTLEY_TRY(check_reachable(cluster, machine_names(cluster), program));
  MOTLEY_TRY(apply_transport(transport, workers));
  log.info(transport.reason);
  AllreduceFollower follower(cluster, options);
  WorkerGroup group(
      std::move(workers),
      {.start_timeout_s = options.comm.start_timeout_s, .patience_s = options.comm.patience_s},
      log);
  MOTLEY_TRY(
      group.run([&](int worker, const Json& event) { return follower.on_event(worker, event); }));
  return follower.finish();
}

}  // namespace motley
