#include "cluster/diagnose/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hex.h"
#include "base/process/status_line.h"
#include "base/secret.h"
#include "base/system/files.h"
#include "base/system/version.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/diagnose/first_queries.h"
#include "cluster/launch/transport_choice.h"
#include "cluster/launch/worker_command.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"

namespace motley {
namespace {

// For each direction of each pair: enough to detect a link that differs far from the cluster file.
constexpr double kLink_s = 0.3;

// A file in the run folder by which a worker recognizes that its folder of that name is the same
// one. The destructor removes it.
class Mark {
 public:
  static Result<Mark> leave_in(const std::filesystem::path& folder) {
    MOTLEY_ASSIGN(const std::string random, make_secret());
    Mark mark(folder / ".motley-doctor", to_hex(random));
    MOTLEY_TRY(write_file_atomic(mark.path_, mark.text_));
    return mark;
  }

  Mark(Mark&& other) noexcept
      : path_(std::exchange(other.path_, {})), text_(std::move(other.text_)) {}

  Mark& operator=(Mark&&) = delete;

  ~Mark() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Mark(std::filesystem::path path, std::string text)
      : path_(std::move(path)), text_(std::move(text)) {}

  std::filesystem::path path_;
  std::string text_;
};

// Where the machine looks for the mark: runs_dir, if set, replaces the launcher's folder there.
std::filesystem::path place_of(const Mark& mark, const Machine& machine) {
  if (machine.runs_dir.empty()) return mark.path();
  return std::filesystem::path(machine.runs_dir) / mark.path().filename();
}

WorkerSpec doctor_worker(const Cluster& cluster,
                         const Machine& machine,
                         const std::filesystem::path& program,
                         const Mark* mark) {
  WorkerSpec worker{machine.name, machine, stage_program_on(machine, program), {}};
  worker.job.verb = "doctor";
  Json peers = Json::array();
  for (const Machine& peer : cluster.machines) {
    if (peer.name != machine.name && !peer.address.empty()) peers.push_back(peer.address);
  }
  worker.job.options = Json{{"peers", peers},
                            {"mark", mark != nullptr ? place_of(*mark, machine).string() : ""},
                            {"mark_text", mark != nullptr ? mark->text() : ""}};
  return worker;
}

// Announces each stage before it starts: a worker whose libraries are not cached yet takes tens of
// seconds to start. A transient line on a live terminal, else a line of the log.
class Announcer {
 public:
  explicit Announcer(const Log& log) : log_(log) {
    if (is_live_terminal(stderr, std::getenv("TERM"))) live_.emplace(stderr);
  }

  ~Announcer() { clear(); }

  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  void say(const std::string& what) {
    if (live_) {
      live_->show(what);
    } else {
      log_.info(what);
    }
  }

  void clear() {
    if (live_) live_->clear();
  }

 private:
  const Log& log_;
  std::optional<StatusLine> live_;
};

Result<void> inspect_one(WorkerSpec worker,
                         const CommConfig& comm,
                         Announcer& announcer,
                         const Log& log,
                         InspectedMachine& machine) {
  const std::string name = worker.name;
  std::vector<WorkerSpec> workers;
  workers.push_back(std::move(worker));
  // The same timeout as a run's.
  WorkerGroup group(std::move(workers),
                    {.start_timeout_s = comm.start_timeout_s,
                     .patience_s = comm.patience_s,
                     .before_log = [&announcer] { announcer.clear(); }},
                    log);
  const auto inspected = group.run([&](int, const Json& event) -> Result<void> {
    if (event.value("event", "") != "facts") return {};
    MOTLEY_ASSIGN(machine.facts, facts_from_json(event, fmt::format("the report of {}", name)));
    machine.clock_ahead_s = machine.facts->unix_s - unix_time_s();
    return {};
  });
  if (!inspected.ok()) {
    if (is_stop(inspected.error())) return inspected.error();
    machine.facts.reset();
    machine.failure = inspected.error();
  } else if (!machine.facts) {
    machine.failure = Error{ErrorCode::kPeer, fmt::format("{} sent no report", name), "",
                            "use the same version of Motley on every machine"};
  }
  return {};
}

Error cannot_be_used(const Machine& machine, const std::string& problem) {
  return {ErrorCode::kPeer, fmt::format("{} cannot be used", machine.name), problem,
          is_ssh(machine.shell)
              ? fmt::format("'{} true' must end at once without asking for a password; motley_dir "
                            "in the cluster file is the folder of the program",
                            fmt::join(machine.shell, " "))
              : "set motley_dir in the cluster file to the folder of the program"};
}

// " (2 of 3)" for the machine with that index.
std::string position_text(std::size_t index, const Cluster& cluster) {
  const std::size_t count = cluster.machines.size();
  return count == 1 ? "" : fmt::format(" ({} of {})", index + 1, count);
}

Result<void> inspect_links(const Cluster& cluster,
                           const DoctorOptions& options,
                           const std::filesystem::path& program,
                           Announcer& announcer,
                           const Log& log,
                           Inspection& inspection) {
  const bool all_answer = std::ranges::all_of(
      inspection.machines, [](const InspectedMachine& each) { return each.facts.has_value(); });
  if (!all_answer || cluster.machines.size() < 2) return {};
  announcer.say(
      fmt::format("testing connections between the {} machines", cluster.machines.size()));
  auto probed = probe_links(
      cluster,
      {.comm = options.comm, .seconds = kLink_s, .before_log = [&announcer] { announcer.clear(); }},
      program, log);
  if (probed.ok()) {
    inspection.links = std::move(probed).value();
    return {};
  }
  if (is_stop(probed.error())) return probed.error();
  inspection.links_failure = probed.error();
  return {};
}

}  // namespace

Result<Inspection> inspect(const Cluster& cluster,
                           const DoctorOptions& options,
                           const std::filesystem::path& program,
                           const Log& log) {
  Inspection inspection;
  inspection.asked = options;
  inspection.version = motley_version();
  inspection.build = build_of(program);
  const auto mark = Mark::leave_in(options.run_folder);
  if (!mark.ok()) inspection.mark_failure = mark.error();
  Announcer announcer(log);
  const std::filesystem::path& run_dir =
      options.missing_folder.empty() ? options.run_folder : options.missing_folder;
  announcer.say(fmt::format("querying {} by shell", fmt::join(machine_names(cluster), ", ")));
  MOTLEY_ASSIGN(const std::vector<FirstResponse> first, query_first(cluster, run_dir, program));
  for (const Machine& machine : cluster.machines) {
    const FirstResponse& answer = first[inspection.machines.size()];
    if (!answer.problem.empty()) {
      inspection.machines.emplace_back().failure = cannot_be_used(machine, answer.problem);
      continue;
    }
    announcer.say(fmt::format("examining {}{}; a first start may take a minute", machine.name,
                              position_text(inspection.machines.size(), cluster)));
    InspectedMachine& inspected = inspection.machines.emplace_back();
    inspected.unwritable = answer.unwritable;
    MOTLEY_TRY(inspect_one(doctor_worker(cluster, machine, program, mark.ok() ? &*mark : nullptr),
                           options.comm, announcer, log, inspected));
  }
  MOTLEY_TRY(inspect_links(cluster, options, program, announcer, log, inspection));
  return inspection;
}

void settle_by_inspection(Cluster& cluster, const Inspection& inspection) {
  for (std::size_t i = 0; i < cluster.machines.size(); ++i) {
    Machine& machine = cluster.machines[i];
    const auto& facts = inspection.machines[i].facts;
    if (!facts || !has_automatic_devices(machine)) continue;
    machine.devices = automatic_devices(facts->found, machine.devices.size());
  }
}

}  // namespace motley
