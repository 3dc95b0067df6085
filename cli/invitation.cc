#include "cli/invitation.h"

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
#include "base/process/stop_signals.h"
#include "base/system/program_path.h"
#include "checkpoint/lock/run_lock.h"
#include "cli/local_machine.h"
#include "cluster/join/head/admission.h"
#include "cluster/launch/reachability.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/gather.h"
#include "plan/cluster/joined_shell.h"

namespace motley {
namespace {

constexpr std::int64_t kPlacesMax = 255;
constexpr std::int64_t kValidMax_min = 24 * 60;
constexpr double kValidDefault_s = 15 * 60;
constexpr int kLook_ms = 100;

// --listen [ADDRESS:]PORT.
Result<void> read_listen(const std::string& text, InviteOptions& options) {
  const std::size_t colon = text.rfind(':');
  const std::size_t digits = colon == std::string::npos ? 0 : colon + 1;
  const char* const end = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data() + digits, end, options.listen_port);
  if (code != std::errc{} || next != end) {
    return Error{ErrorCode::kUsage, fmt::format("--listen is '{}'", excerpt(text)),
                 "it is not a port, or an address and a port",
                 "give for example --listen 40100 or --listen 192.168.1.10:40100"};
  }
  if (colon != std::string::npos) options.listen_address = text.substr(0, colon);
  std::erase_if(options.listen_address, [](char c) { return c == '[' || c == ']'; });
  return {};
}

Result<InviteOptions> read_options(const Arguments& arguments) {
  InviteOptions options;
  MOTLEY_ASSIGN(const auto places, integer_value(arguments, "invite", 1, kPlacesMax));
  options.places = static_cast<int>(places);
  options.valid_s = kValidDefault_s;
  if (arguments.has("valid")) {
    MOTLEY_ASSIGN(const auto minutes, integer_value(arguments, "valid", 1, kValidMax_min));
    options.valid_s = static_cast<double>(minutes * 60);
  }
  if (arguments.has("listen")) MOTLEY_TRY(read_listen(arguments.value("listen"), options));
  options.addresses = options.listen_address.empty()
                          ? outside_addresses()
                          : std::vector<std::string>{options.listen_address};
  return options;
}

Result<void> wait_for_machines(const JoinHead& head,
                               const InviteOptions& options,
                               ProgressLine& line) {
  StopSignals signals;
  const Deadline deadline = Deadline::after_s(options.valid_s);
  const auto places = static_cast<std::size_t>(options.places);
  for (;;) {
    const std::size_t joined = head.machines().size();
    if (joined >= places) return {};
    if (deadline.passed()) {
      return Error{
          ErrorCode::kPeer,
          fmt::format("only {} of {} machines joined before the ticket expired", joined, places),
          "", "start again, with a longer time by --valid or fewer machines by --invite"};
    }
    line.say(fmt::format("waiting for machines: {} of {}; the ticket is valid for {:.0f} min",
                         joined, places, deadline.left_s() / 60));
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
  machine.runs_dir = joined.runs;
  return machine;
}

Result<void> gather(const TrainingRequest& request, ProgressLine& line, const Log& log) {
  const std::filesystem::path& program = request.machines.stage_program;
  const std::filesystem::path run = absolute_normal_path(request.planning.config.run.dir);
  const Cluster& cluster = request.planning.cluster;
  std::set<std::string> machines = machine_names(cluster);
  MOTLEY_ASSIGN(const auto unusable, find_unusable(cluster, machines, program, kResponse_s));
  for (const auto& [name, problem] : unusable) machines.erase(name);
  MOTLEY_ASSIGN(RunLock lock, RunLock::acquire(run, log));
  MOTLEY_ASSIGN(const DistributedCheckpoint found,
                find_checkpoint(cluster, machines, program, run, {}, lock, line, log));
  MOTLEY_ASSIGN(const Deliveries missing, missing_in_launcher_folder(found));
  MOTLEY_ASSIGN([[maybe_unused]] const auto delivered, deliver(found, missing, log));
  return {};
}

}  // namespace

std::vector<OptionSpec> invite_options() {
  return {{"invite", "N", "print a ticket, start once N machines joined by it (`motley join`)"},
          {"listen", "PLACE", "with --invite: [ADDRESS:]PORT to listen at (default: any port)"},
          {"valid", "MINUTES", "with --invite: how long machines may join (default: 15)"}};
}

Result<Invitation> invite_machines(const Arguments& arguments,
                                   Cluster cluster,
                                   ProgressLine& line,
                                   const Log::Output& output) {
  MOTLEY_ASSIGN(InviteOptions options, read_options(arguments));
  const auto log = std::make_shared<Log>("", LogLevel::kInfo, output);
  options.say = [log](const std::string& text) { log->info(text); };
  if (!arguments.has("cluster") && !cluster.machines.empty()) {
    cluster.machines.front().name = name_in_cluster(local_machine().name);
  }
  options.taken_names = machine_names(cluster);
  MOTLEY_ASSIGN(auto head, JoinHead::open(options));
  std::FILE* const out = arguments.has("json") ? stderr : stdout;
  fmt::print(out,
             "On {}, within {:.0f} minutes:\n"
             "motley join {}\n",
             options.places == 1 ? "the other machine"
                                 : fmt::format("each of the {} other machines", options.places),
             options.valid_s / 60, ticket_text(head->ticket()));
  std::fflush(out);
  MOTLEY_TRY(wait_for_machines(*head, options, line));
  line.clear();
  const auto joined = head->machines();
  give_address(cluster, joined, *log);
  for (const JoinedMachine& each : joined) cluster.machines.push_back(machine_of(each, *head));
  return Invitation{std::move(head), std::move(cluster)};
}

void gather_from_joined(const TrainingRequest& request, ProgressLine& line, const Log& log) {
  const Result<void> gathered = gather(request, line, log);
  line.clear();
  if (gathered.ok()) return;
  log.warn(fmt::format("the newest checkpoint is not complete here: {}: {}", gathered.error().what,
                       gathered.error().cause));
}

}  // namespace motley
