#include "cluster/replication/machine_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/json.h"
#include "cluster/launch/worker_group.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/shards_progress.h"
#include "protocol/store_message.h"
#include "protocol/text_pieces.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

std::string home_here() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

WorkerSpec look_worker(const Machine& machine,
                       const InventoryRequest& request,
                       const StoreQuery& store_query) {
  WorkerSpec worker{machine.name, machine, store_program_on(machine, request.program), {}};
  const fs::path run_dir = absolute_normal_path(request.run_dir);
  worker.job.verb = "store";
  worker.job.launch = request.launch;
  // A machine with runs_dir in the cluster file has its runs there.
  worker.job.run_dir = machine.runs_dir.empty() ? run_dir.string() : "";
  worker.job.options =
      Json{{"look", inventory_order_to_json({own_dir_of(machine, run_dir, home_here()),
                                             request.if_absent, store_query})}};
  return worker;
}

// What a machine has reported so far.
struct Said {
  std::optional<StoreContents> contents;
  PieceJoiner step_metadata;
};

Result<void> hear(const Json& event, const std::string& name, Said& said) {
  const std::string source = fmt::format("the folder of {}", name);
  const std::string kind = event.value("event", "");
  if (kind == kStoreEvent) {
    MOTLEY_ASSIGN(said.contents, read_store_event(event, source));
  } else if (kind == kStoreMetadataEvent && said.contents) {
    MOTLEY_ASSIGN(const std::optional<std::string> text, said.step_metadata.add(event));
    if (!text) return {};
    MOTLEY_ASSIGN(const Json json, parse_json(*text, source));
    MOTLEY_ASSIGN(said.contents->step_metadata, metadata_from_json(json, source));
  }
  return {};
}

// Compares the change times of one file as two machines see it. They agree to whole seconds if a
// network file system rounds. The file is created in two steps, and one machine may read the time
// between them.
bool is_one_time(std::int64_t a_ns, std::int64_t b_ns) {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  const bool is_rounded = a_ns % kSecond_ns == 0 || b_ns % kSecond_ns == 0;
  return std::abs(a_ns - b_ns) <= (is_rounded ? 2 * kSecond_ns : kSecond_ns / 10);
}

// Machines that see one folder see one file with its id. If the folder or the disk of one was
// copied to the other, each has a file of its own.
Result<void> require_one_folder(const MachineStore& store,
                                const std::string& machine,
                                const StoreLocation& location) {
  const StoreLocation& known = store.contents.location;
  if (is_one_time(known.id_changed_ns, location.id_changed_ns)) return {};
  const bool is_newer = location.id_changed_ns > known.id_changed_ns;
  const std::string& copied = is_newer ? machine : store.machines.front();
  return Error{
      ErrorCode::kConfig,
      fmt::format("the run folders of {} and {} are separate but have the same id",
                  store.machines.front(), machine),
      fmt::format("{} on {} was copied from the other", (is_newer ? location : known).dir.string(),
                  copied),
      fmt::format(
          "remove store.json there: the folder gets its own id, and its files count as copies")};
}

// Runs of one name, whose launchers do not see each other's folders, may use the same folder on a
// machine.
Result<void> require_same_run(StoreInventory& stores,
                              const std::string& machine,
                              const StoreContents& contents) {
  if (contents.run.empty() || contents.steps.empty()) return {};
  if (stores.run.empty()) stores.run = contents.run;
  if (stores.run == contents.run) return {};
  return Error{
      ErrorCode::kConfig,
      fmt::format("{} on {} has another run of the same name", contents.location.dir.string(),
                  machine),
      fmt::format("its part of step {} is of run {}; this is run {}", contents.steps.back(),
                  contents.run, stores.run),
      "give one of the two another name with --run, or another runs_dir in the cluster file"};
}

Result<void> add_to(StoreInventory& stores,
                    const std::string& machine,
                    std::optional<StoreContents> contents) {
  if (!contents) {
    return Error{ErrorCode::kPeer, fmt::format("{} did not report its run folder", machine), "",
                 "use the same version of Motley on every machine"};
  }
  if (!contents->lock_holder.empty()) {
    return Error{
        ErrorCode::kPeer,
        fmt::format("another launcher runs in {} on {}", contents->location.dir.string(), machine),
        fmt::format("{}; a run folder has one launcher at a time", contents->lock_holder),
        "wait for its end, or end it on the machine where it was started, or choose another folder "
        "with --run"};
  }
  MOTLEY_TRY(require_same_run(stores, machine, *contents));
  // A dry run creates no folder, so there is no id yet; each machine then counts as a folder of its
  // own.
  const bool is_unmade = !contents->location.is_shared && contents->location.id.empty();
  const StoreId id = is_unmade ? "on " + machine : contents->location.id;
  stores.dirs[machine] = contents->location.dir;
  MachineStore& store = stores.by_id[id];
  if (!contents->location.is_shared && !store.machines.empty()) {
    MOTLEY_TRY(require_one_folder(store, machine, contents->location));
  }
  if (!contents->location.is_shared) store.contents = *std::move(contents);
  store.machines.push_back(machine);
  return {};
}

}  // namespace

fs::path absolute_normal_path(const fs::path& path) {
  fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();  // a trailing '/'
}

StoreId StoreInventory::of(const std::string& machine) const {
  for (const auto& [id, store] : by_id) {
    if (std::ranges::count(store.machines, machine) > 0) return id;
  }
  return {};
}

std::set<std::string> StoreInventory::machines() const {
  std::set<std::string> machines;
  for (const auto& [id, store] : by_id) {
    machines.insert(store.machines.begin(), store.machines.end());
  }
  return machines;
}

std::int64_t StoreInventory::last_launch() const {
  std::int64_t last = 0;
  for (const auto& [id, store] : by_id) {
    if (!id.empty()) last = std::max(last, store.contents.last_launch);
  }
  return last;
}

bool may_have_own_folder(const Machine& machine) {
  // Without an address it is the launcher's machine, whatever command starts its workers.
  const bool is_elsewhere = !machine.shell.empty() && !machine.address.empty();
  return is_elsewhere || !machine.runs_dir.empty();
}

bool may_have_own_folders(const Cluster& cluster, const std::set<std::string>& machines) {
  return std::ranges::any_of(cluster.machines, [&](const Machine& machine) {
    return machines.contains(machine.name) && may_have_own_folder(machine);
  });
}

std::string own_dir_of(const Machine& machine, const fs::path& run_dir, const std::string& home) {
  if (!machine.runs_dir.empty()) return (fs::path(machine.runs_dir) / run_dir.filename()).string();
  const fs::path from_home = run_dir.lexically_relative(home);
  const bool is_below = fs::path(home).is_absolute() && !from_home.empty() &&
                        *from_home.begin() != ".." && *from_home.begin() != ".";
  return is_below ? "~/" + from_home.string() : run_dir.string();
}

Result<StoreInventory> inventory_stores(const InventoryRequest& request,
                                        const StoreQuery& store_query,
                                        const Log& log) {
  StoreInventory stores;
  MachineStore& mine = stores.by_id[StoreId()];
  ProgressCounter here;
  ShardsProgress progress("verifying the checkpoint", store_query.wanted ? request.line : nullptr);
  progress.follow(here);
  MOTLEY_ASSIGN(mine.contents,
                take_inventory({.dir = absolute_normal_path(request.run_dir)}, store_query, &here));
  stores.run = mine.contents.run;
  std::vector<WorkerSpec> workers;
  std::vector<std::string> names;
  for (const Machine& machine : request.cluster.machines) {
    if (!request.machines.contains(machine.name)) continue;
    if (!may_have_own_folder(machine)) {
      mine.machines.push_back(machine.name);
      continue;
    }
    workers.push_back(look_worker(machine, request, store_query));
    names.push_back(machine.name);
  }
  if (workers.empty()) return stores;
  std::vector<Said> said(workers.size());
  const WorkerGroupOptions options{
      .start_timeout_s = request.start_timeout_s,
      .on_task = [&](int worker, const ProgressBytes& bytes) { progress.take(worker, bytes); },
      .on_fault = request.on_fault};
  WorkerGroup group(std::move(workers), options, log);
  MOTLEY_TRY(group.run([&](int worker, const Json& event) {
    const auto index = static_cast<std::size_t>(worker);
    return hear(event, names[index], said[index]);
  }));
  for (std::size_t i = 0; i < said.size(); ++i) {
    MOTLEY_TRY(add_to(stores, names[i], std::move(said[i].contents)));
  }
  return stores;
}

}  // namespace motley
