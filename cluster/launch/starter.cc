#include "cluster/launch/starter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "cluster/launch/worker_command.h"

namespace motley {
namespace {

constexpr double kReportInterval_s = 10;
constexpr double kBetweenTries_s = 0.1;  // while the gate is closed

}  // namespace

Starter::Starter(std::vector<std::unique_ptr<Worker>>& workers,
                 const WorkerGroupOptions& options,
                 std::function<void(const std::string&)> say)
    : workers_(workers), options_(options), say_(std::move(say)), reported_at_s_(now_s()) {}

Result<void> Starter::start_due() {
  for (const auto& worker : workers_) {
    const std::vector<std::string>& prefix = worker->spec().machine.shell;
    const bool is_its_time = worker->to_start && now_s() >= worker->start_at_s;
    if (!is_its_time || !gate_.is_open(prefix, now_s())) continue;
    gate_.enter(prefix, now_s());
    MOTLEY_TRY(worker->start(options_.log_folder, worker->patience_s(options_.patience_s)));
  }
  return {};
}

bool Starter::starts_again(Worker& worker, const ProcessExit& exit) {
  const std::vector<std::string>& prefix = worker.spec().machine.shell;
  gate_.leave(prefix);
  if (worker.greeted() || !was_rejected(prefix, exit, worker.last_lines())) return false;
  const double wait_s = wait_before_retry_s(++worker.tries);
  if (wait_s < 0) return false;
  worker.start_over(now_s() + wait_s);
  return true;
}

void Starter::addresses_sent() {
  addresses_sent_ = true;
  for (const auto& worker : workers_) worker->progress_at_s = now_s();
}

bool Starter::is_due(const Worker& worker) const {
  if (worker.to_start || worker.activity.ready) return false;
  return !worker.address || addresses_sent_;
}

double Starter::idle_s() const {
  double idle_s = std::max(0.0, reported_at_s_ + kReportInterval_s - now_s());
  for (const auto& worker : workers_) {
    if (worker->to_start) {
      idle_s = std::min(idle_s, std::max(kBetweenTries_s, worker->start_at_s - now_s()));
    } else if (is_due(*worker)) {
      idle_s = std::min(idle_s, worker->progress_at_s + options_.start_timeout_s - now_s());
    }
  }
  return std::max(0.0, idle_s);
}

std::optional<PeerFailure> Starter::look() {
  std::vector<const Worker*> late;
  const bool reports = now_s() - reported_at_s_ >= kReportInterval_s;
  if (reports) reported_at_s_ = now_s();
  for (const auto& worker : workers_) {
    if (!is_due(*worker)) continue;
    const std::string& task = worker->activity.task;
    const double silent_s = now_s() - worker->progress_at_s;
    if (reports && !task.empty()) {
      say_(fmt::format("{}: {}", worker->spec().name, task));
    } else if (reports && silent_s >= kReportInterval_s) {
      say_(fmt::format("{}: no report for {:.0f} s; the limit is {:g} s", worker->spec().name,
                       silent_s, options_.start_timeout_s));
    }
    if (silent_s >= options_.start_timeout_s) late.push_back(worker.get());
  }
  if (late.empty()) return std::nullopt;
  return standstill(late);
}

PeerFailure Starter::standstill(const std::vector<const Worker*>& late) const {
  std::vector<std::string> names;
  std::set<std::string> machines;
  std::vector<std::string> waits_for;  // their ports accept connections, but no answer follows
  bool is_login = false;
  for (const Worker* worker : late) {
    const std::string& task = worker->activity.task;
    names.push_back(worker->spec().name + (task.empty() ? "" : fmt::format(" ({})", task)));
    machines.insert(worker->spec().machine.name);
    is_login = is_login || (!worker->greeted() && is_ssh(worker->spec().machine.shell));
    for (const UnreachedPeer& peer : worker->unreached) {
      if (peer.rank.index() >= workers_.size()) continue;
      waits_for.push_back(fmt::format("{} is waiting for {} at {}", worker->spec().name,
                                      workers_[peer.rank.index()]->spec().name, peer.address));
    }
  }
  const Worker& first = *late.front();
  Error error{ErrorCode::kPeer,
              fmt::format("not ready, and no progress for {:g} s: {}", options_.start_timeout_s,
                          fmt::join(names, ", ")),
              "starting the program, loading or connecting has stalled",
              "see the workers' logs; if the machine is overloaded, raise comm.start_timeout_s"};
  if (is_login) {
    error.cause = "starting the program has stalled";
    error.remedy =
        "check that the machine's ssh command, with 'true' as its last word, ends at once, or "
        "raise comm.start_timeout_s";
  } else if (!waits_for.empty()) {
    error.cause = fmt::format("{}: the port accepts connections, but sends no answer",
                              fmt::join(waits_for, "; "));
    error.remedy =
        "run 'ping -M do -s 1472' between the machines: if it fails and a shorter one does not, "
        "the network drops large packets: set the same MTU on all machines";
  }
  PeerFault fault;
  if (machines.size() == 1) fault.machines = {first.spec().machine.name};
  return {std::move(error), std::move(fault)};
}

}  // namespace motley
