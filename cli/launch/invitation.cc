#include "cli/launch/invitation.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hex.h"
#include "base/process/stop_signals.h"
#include "base/secret.h"
#include "base/system/program_path.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "cli/local_machine.h"
#include "cluster/join/head/admission.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/workers.h"
#include "cluster/lease/channel_patience.h"
#include "cluster/prepare/claim_folder.h"
#include "cluster/replication/gather.h"
#include "plan/cluster/joined_shell.h"
#include "record/run_folder.h"

namespace motley {
namespace {

constexpr std::int64_t kPlacesMax = 255;
constexpr std::int64_t kValidMax_min = 24 * 60;
constexpr int kLook_ms = 100;

// Those of the command line for both ways to join.
Result<InviteOptions> common_options(const Arguments& arguments) {
  InviteOptions options;
  MOTLEY_ASSIGN(options.valid_s, valid_s(arguments));
  MOTLEY_ASSIGN(const ListenPlace place, listen_place(arguments));
  options.listen_address = place.address;
  options.listen_port = place.port;
  options.addresses =
      place.address.empty() ? outside_addresses() : std::vector<std::string>{place.address};
  return options;
}

// Of machines that are connected: one that has left may come back.
int places_taken(const JoinHead& head) {
  int taken = 0;
  for (const JoinedMachine& each : head.machines()) taken += each.is_connected ? each.processes : 0;
  return taken;
}

Error too_few(int joined, int places, bool is_group) {
  if (is_group) {
    return {
        ErrorCode::kPeer,
        fmt::format("the machines of only {} of {} other processes came in time", joined, places),
        "", "check that the launcher starts them all; --valid gives them a longer time"};
  }
  return {ErrorCode::kPeer,
          fmt::format("only {} of {} machines joined before the ticket expired", joined, places),
          "", "start again, with a longer time by --valid or fewer machines by --invite"};
}

Result<void> wait_for_machines(
    const JoinHead& head, int places, double valid_s, bool is_group, ProgressLine& line) {
  StopSignals signals;
  const Deadline deadline = Deadline::after_s(valid_s);
  for (;;) {
    const int joined = places_taken(head);
    if (joined >= places) return {};
    if (deadline.passed()) return too_few(joined, places, is_group);
    line.say(fmt::format("waiting for {}: {} of {}; for {:.0f} min more",
                         is_group ? "other processes" : "machines", joined, places,
                         deadline.left_s() / 60));
    pollfd signal{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&signal, 1, kLook_ms);
    if (const auto stop = signals.take()) return *stop;
  }
}

// This machine gets the address at which the others have reached it.
void give_address(Cluster& cluster, const std::vector<JoinedMachine>& joined, const Log& log) {
  const std::string& address = joined.front().head_address;
  for (Machine& machine : cluster.machines) {
    if (machine.shell.empty() && machine.address.empty()) machine.address = address;
  }
  for (const JoinedMachine& each : joined) {
    if (each.head_address == address) continue;
    log.warn(
        fmt::format("{} reached this machine at {}, {} at {}; data goes through the latter: "
                    "choose one network with --listen if they cannot connect",
                    each.name, each.head_address, joined.front().name, address));
  }
}

Machine machine_of(const JoinedMachine& joined, const JoinHead& head) {
  Machine machine;
  machine.name = joined.name;
  machine.address = joined.address;
  machine.shell = joined_prefix({program_path(), head.socket(), joined.name, joined.files});
  machine.devices = {std::string(kAutomaticDevice)};
  if (!joined.sees_run) machine.runs_dir = joined.runs;
  return machine;
}

// The newest checkpoint of the run, wherever its parts are.
Result<DistributedCheckpoint> newest_anywhere(const TrainingRequest& request,
                                              RunLock& lock,
                                              ProgressLine& line,
                                              const Log& log) {
  const std::filesystem::path& program = request.machines.stage_program;
  const std::filesystem::path run = absolute_normal_path(request.planning.config.run.dir);
  const Cluster& cluster = request.planning.cluster;
  std::set<std::string> machines = machine_names(cluster);
  MOTLEY_ASSIGN(const auto unusable, find_unusable(cluster, machines, program, kResponse_s));
  for (const auto& [name, problem] : unusable) machines.erase(name);
  return find_checkpoint(cluster, machines, program, run, {}, lock, line, log);
}

Result<void> gather(const TrainingRequest& request, ProgressLine& line, const Log& log) {
  MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(request.planning.config.run.dir, log));
  MOTLEY_ASSIGN(const DistributedCheckpoint found, newest_anywhere(request, lock, line, log));
  MOTLEY_ASSIGN(const Deliveries missing, missing_in_launcher_folder(found));
  MOTLEY_ASSIGN([[maybe_unused]] const auto delivered, deliver(found, missing, log));
  return {};
}

void print_ticket(const Arguments& arguments, const InviteOptions& options, const Ticket& ticket) {
  std::FILE* const out = arguments.has("json") ? stderr : stdout;
  fmt::print(out,
             "On {}, within {:.0f} minute{}:\n"
             "motley join {}\n",
             options.places == 1 ? "the other machine"
                                 : fmt::format("each of the {} other machines", options.places),
             options.valid_s / 60, options.valid_s == 60 ? "" : "s", ticket_text(ticket));
  std::fflush(out);
}

}  // namespace

std::vector<OptionSpec> invite_options() {
  return {{"invite", "N", "print a ticket, start once N machines joined by it (`motley join`)"},
          {"listen", "PLACE", "[ADDRESS:]PORT at which machines join (default: any port)"},
          {"valid", "MINUTES", "how long machines may join (default: 15)"}};
}

Result<ListenPlace> listen_place(const Arguments& arguments) {
  ListenPlace place;
  if (!arguments.has("listen")) return place;
  const std::string& text = arguments.value("listen");
  const std::size_t colon = text.rfind(':');
  const std::size_t digits = colon == std::string::npos ? 0 : colon + 1;
  const char* const end = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data() + digits, end, place.port);
  if (code != std::errc{} || next != end) {
    return Error{ErrorCode::kUsage, fmt::format("--listen is '{}'", excerpt(text)),
                 "it is not a port, or an address and a port",
                 "give for example --listen 40100 or --listen 192.168.1.10:40100"};
  }
  if (colon != std::string::npos) place.address = text.substr(0, colon);
  std::erase_if(place.address, [](char c) { return c == '[' || c == ']'; });
  if (place.address == "0.0.0.0" || place.address == "::") place.address.clear();  // all
  return place;
}

Result<double> valid_s(const Arguments& arguments) {
  if (!arguments.has("valid")) return kInvitedValidDefault_s;
  MOTLEY_ASSIGN(const auto minutes, integer_value(arguments, "valid", 1, kValidMax_min));
  return static_cast<double>(minutes * 60);
}

Result<void> Invitation::write_file(const std::filesystem::path& run_dir, InvitationText text) {
  Result<RunInvitation> file = RunInvitation::write(run_dir, text);
  wipe(text.ticket);
  if (!file.ok()) return std::move(file).error();
  file_.emplace(std::move(file).value());
  return {};
}

Result<int> Invitation::open(const TrainingRequest& request, const Log::Output& output) {
  MOTLEY_ASSIGN(InviteOptions options, common_options(arguments_));
  const auto log = std::make_shared<Log>("", LogLevel::kInfo, output);
  options.silence_s =
      std::max(kJoinSilence_s, channel_patience_s(request.planning.config.comm.patience_s, false));
  options.say = [log](const std::string& text) { log->info(text); };
  options.taken_names = machine_names(request.planning.cluster);
  if (!group_) {
    MOTLEY_ASSIGN(const auto places, integer_value(arguments_, "invite", 1, kPlacesMax));
    options.places = static_cast<int>(places);
    MOTLEY_ASSIGN(head_, JoinHead::open(options));
    print_ticket(arguments_, options, head_->ticket());
    return options.places;
  }
  const StartedProcess& process = group_->process;
  options.places = process.processes - process.places;
  options.announced = process.processes;
  options.shared_secret = std::exchange(group_->secret, "");
  const bool has_secret = !options.shared_secret.empty();
  if (has_secret && options.listen_port == 0) options.listen_port = process.port;
  MOTLEY_ASSIGN(const std::string random, make_secret());
  options.mark = to_hex(random);
  const std::filesystem::path run_dir = absolute_normal_path(request.planning.config.run.dir);
  MOTLEY_TRY(RunFolder(run_dir).make());
  // A machine that knows the secret may come at once, and looks for the mark then.
  if (has_secret) MOTLEY_TRY(write_file(run_dir, {options.mark, ""}));
  auto head = JoinHead::open(options);
  wipe(options.shared_secret);
  if (!head.ok()) return std::move(head).error();
  head_ = std::move(head).value();
  if (!has_secret) MOTLEY_TRY(write_file(run_dir, {options.mark, ticket_text(head_->ticket())}));
  log->info(fmt::format("process 0 of {} by {}: waits for the machines of {} others at port {}",
                        process.processes, process.starter, options.places, head_->ticket().port));
  return options.places;
}

Result<void> Invitation::join(TrainingRequest& request,
                              ProgressLine& line,
                              const Log::Output& output) {
  Cluster& cluster = request.planning.cluster;
  const Log log("", LogLevel::kInfo, output);
  if (!arguments_.has("cluster") && !cluster.machines.empty()) {
    cluster.machines.front().name =
        group_ ? group_->machine : name_in_cluster(local_machine().name);
  }
  MOTLEY_TRY(check_before_machines_join(request));
  const bool is_alone = group_ && group_->process.processes == group_->process.places;
  if (!is_alone) {
    MOTLEY_ASSIGN(const int places, open(request, output));
    MOTLEY_ASSIGN(const double wait_s, valid_s(arguments_));
    MOTLEY_TRY(wait_for_machines(*head_, places, wait_s, group_.has_value(), line));
    line.clear();
    const auto joined = head_->machines();
    give_address(cluster, joined, log);
    for (const JoinedMachine& each : joined) cluster.machines.push_back(machine_of(each, *head_));
  }
  return {};
}

void Invitation::end(const TrainingRequest& request,
                     const Result<void>& outcome,
                     ProgressLine& line,
                     const Log& log) {
  file_.reset();
  if (head_ == nullptr) return;
  const bool has_stopped = !outcome.ok() && is_stop(outcome.error());
  const std::filesystem::path run_dir = request.planning.config.run.dir;
  const bool may_gather = outcome.ok() || (has_stopped && !list_checkpoints(run_dir).empty());
  if (may_gather && !request.dry_run) {
    const Result<void> gathered = gather(request, line, log);
    line.clear();
    if (!gathered.ok()) {
      log.warn(fmt::format("the newest checkpoint is not complete here: {}: {}",
                           gathered.error().what, gathered.error().cause));
    }
  }
  if (!outcome.ok()) {
    head_->set_end(static_cast<int>(outcome.error().code), outcome.error().what);
  }
  head_.reset();
}

}  // namespace motley
