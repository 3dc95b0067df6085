#include <fmt/format.h>

#include <string>
#include <vector>

#include "comm/frames/frame_link.h"
#include "comm/transport/network_interface.h"
#include "comm/transport/transport.h"
#include "plan/group_limits.h"
#include "profiling/link_bench.h"
#include "worker/group/join_ranks.h"
#include "worker/jobs.h"

namespace motley {
namespace {

constexpr double kSecondsMax = 60;
// The stall timeout of a message on a transport.
constexpr double kStandstill_s = 30;

struct ProbeTask {
  Rank self;
  std::vector<std::string> machines;  // addresses, by rank
  double seconds = 1;
};

Result<ProbeTask> read_probe_task(const Job& job) {
  static const std::string kSource = "the options of a probe job";
  const Error unusable{ErrorCode::kInternal, "a probe job with unusable options", "", ""};
  ProbeTask task;
  for (const Json& address : job.options.value("machines", Json::array())) {
    if (!address.is_string()) return unusable;
    task.machines.push_back(address.get<std::string>());
  }
  MOTLEY_ASSIGN(const auto rank, json_get<std::int64_t>(job.options, "rank", kSource));
  MOTLEY_ASSIGN(task.seconds, json_get<double>(job.options, "seconds", kSource));
  const auto count = static_cast<std::int64_t>(task.machines.size());
  if (count < 2 || count > static_cast<std::int64_t>(kProbedMachinesMax) || rank < 0 ||
      rank >= count)
    return unusable;
  if (!(task.seconds > 0 && task.seconds <= kSecondsMax)) return unusable;
  task.self = Rank{static_cast<std::int32_t>(rank)};
  return task;
}

// "eth0: it holds 10.77.0.1 and routes to 10.77.0.2": the interface that the transport is bound to,
// and whether the system would use the same route.
Result<std::string> describe_network(const Job& job, const ProbeTask& task) {
  std::string interface = job.interface;
  if (interface.empty()) {
    MOTLEY_ASSIGN(interface, interface_of(job.bind_address));
  }
  if (job.bind_address.empty()) return fmt::format("{}: all machines are this computer", interface);
  std::string text =
      fmt::format("{}: {}it has {}", interface,
                  job.interface.empty() ? "" : "named by the cluster file; ", job.bind_address);
  for (std::size_t rank = 0; rank < task.machines.size(); ++rank) {
    const std::string& peer = task.machines[rank];
    if (rank == task.self.index()) continue;
    MOTLEY_ASSIGN(const std::string source, source_address_to(peer));
    text += source == job.bind_address
                ? fmt::format(" and routes to {}", peer)
                : fmt::format(", but the system routes to {} from {}", peer, source);
  }
  return text;
}

// The directed pairs of one probe, on one rank.
class Prober {
 public:
  Prober(const ProbeTask& task, Transport& transport, WorkerChannel& channel)
      : task_(task),
        transport_(transport),
        barrier_(transport, task.self, 1, 0),
        channel_(channel),
        measured_(task.machines.size()) {}

  Result<void> run() {
    const int count = static_cast<int>(task_.machines.size());
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to) {
        if (from == to) continue;
        MOTLEY_TRY(run_pair(Rank{from}, Rank{to}));
        MOTLEY_TRY(meet());
        if (from < to) continue;
        MOTLEY_TRY(run_bidirectional(Rank{from}, Rank{to}));
        MOTLEY_TRY(meet());
      }
    }
    disconnect_ranks(barrier_, task_.self, count, collective_checks_ + 1,
                     channel_.group_progress_clock());
    return {};
  }

 private:
  Result<void> run_pair(Rank from, Rank to) {
    if (from == task_.self) {
      MOTLEY_ASSIGN(const LinkSample link, measure_link(transport_, to, task_.seconds));
      measured_[to.index()] = link;
      channel_.send({{"event", "link"},
                     {"to", to.value},
                     {"bandwidth_bytes_per_s", link.bandwidth_bytes_per_s},
                     {"latency_s", link.latency_s},
                     {"jitter_p95_s", link.jitter_p95_s},
                     {"cpu_s_per_byte", link.send_cpu_s_per_byte}});
    }
    if (to == task_.self) {
      MOTLEY_ASSIGN(const double cpu_s_per_byte, serve_link(transport_, from));
      channel_.send(
          {{"event", "served"}, {"from", from.value}, {"cpu_s_per_byte", cpu_s_per_byte}});
    }
    return {};
  }

  // Called after each direction has been measured alone.
  Result<void> run_bidirectional(Rank leader, Rank other) {
    if (task_.self != leader && task_.self != other) return {};
    const Rank peer = task_.self == leader ? other : leader;
    MOTLEY_ASSIGN(const BidirectionalSample both,
                  measure_bidirectional(transport_, peer, task_.self == leader,
                                        measured_[peer.index()], task_.seconds / 2));
    channel_.send({{"event", "both_ways"},
                   {"with", peer.value},
                   {"alone_s", both.alone_s},
                   {"together_s", both.together_s}});
    return {};
  }

  // A barrier: the next pair starts after this one has stopped using the network. The timeout
  // covers the slowest link that measure_link() accepts.
  Result<void> meet() {
    constexpr double kSlowest_s = 600;
    MOTLEY_TRY(all_gather_small(barrier_, task_.self, static_cast<int>(task_.machines.size()),
                                ++collective_checks_, {}, 0, Deadline::after_s(kSlowest_s)));
    return {};
  }

  const ProbeTask& task_;
  Transport& transport_;
  FrameLink barrier_;
  WorkerChannel& channel_;
  std::vector<LinkSample> measured_;  // [Rank] from this rank to that one
  std::int64_t collective_checks_ = 0;
};

}  // namespace

Result<void> run_probe_job(const Job& job, WorkerChannel& channel) {
  MOTLEY_ASSIGN(const ProbeTask task, read_probe_task(job));
  MOTLEY_ASSIGN(const std::string network, describe_network(job, task));
  channel.send({{"event", "network"}, {"text", network}});
  const int count = static_cast<int>(task.machines.size());
  MOTLEY_ASSIGN(const auto transport, join_ranks(job, task.self, count, channel, kStandstill_s));
  channel.send({{"event", "ready"}});
  return Prober(task, *transport, channel).run();
}

}  // namespace motley
