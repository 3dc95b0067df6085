#include "cluster/replication/gather.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "cluster/replication/plan_transfers.h"
#include "cluster/replication/repair.h"
#include "cluster/replication/transfers.h"
#include "plan/quantity_text.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// The total size of the delivered tensor files.
std::uint64_t bytes_of(const Deliveries& deliveries, const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& [store, names] : deliveries) {
    for (const WrittenFile& file : manifest.files)
      bytes += names.contains(file.name) ? file.bytes : 0;
  }
  return bytes;
}

}  // namespace

InventoryRequest request_of(const DistributedCheckpoint& found) {
  return {.cluster = found.cluster,
          .machines = found.machines,
          .run_dir = found.run,
          .launch = found.launch,
          .program = found.program,
          .start_timeout_s = found.config.comm.start_timeout_s,
          .line = found.line};
}

Result<DistributedCheckpoint> find_checkpoint(const Cluster& cluster,
                                              const std::set<std::string>& machines,
                                              const std::filesystem::path& program,
                                              const std::filesystem::path& run,
                                              std::optional<std::int64_t> step,
                                              RunLock& lock,
                                              ProgressLine& line,
                                              const Log& log) {
  DistributedCheckpoint found{.cluster = cluster,
                              .machines = machines,
                              .program = program,
                              .run = run,
                              .launch = lock.launch(),
                              .line = &line};
  const QueryStores ask = [&](const StoreQuery& store_query) -> Result<StoreInventory> {
    MOTLEY_ASSIGN(found.stores, inventory_stores(request_of(found), store_query, log));
    return found.stores;
  };
  MOTLEY_ASSIGN(auto point, find_restore_point(run, lock.launch(), ask, log, step));
  if (!point) {
    const std::string which = step ? fmt::format(" of step {}", *step) : "";
    return Error{ErrorCode::kConfig, fmt::format("{} has no checkpoint{}", run.string(), which),
                 "and neither has a machine of the cluster file",
                 "check the path and the cluster file"};
  }
  found.point = *std::move(point);
  MOTLEY_ASSIGN(found.config,
                saved_config_from_json(found.point.step_metadata.manifest.config, run.string()));
  MOTLEY_TRY(lock.advance_past(found.stores.last_launch(), log));
  found.launch = lock.launch();
  return found;
}

Result<DeliveredFiles> deliver(const DistributedCheckpoint& found,
                               const Deliveries& deliveries,
                               const Log& log) {
  const Manifest& manifest = found.point.step_metadata.manifest;
  DeliveredFiles delivered{.bytes = bytes_of(deliveries, manifest)};
  for (const auto& [id, files] : deliveries) {
    const MachineStore& store = found.stores.by_id.at(id);
    const std::uint64_t bytes = bytes_of({{id, files}}, manifest);
    const std::string what = files.empty() ? "its manifest"
                                           : fmt::format("{} ({})", fmt::join(files, ", "),
                                                         bytes_text(static_cast<double>(bytes)));
    log.info(fmt::format("{}, {}, gets {}", store.machines.front(),
                         store.contents.location.dir.string(), what));
    delivered.count += files.size();
  }
  MOTLEY_ASSIGN(
      const auto views,
      transfer_files(plan_deliveries(found.point, deliveries, found.stores, found.cluster),
                     request_of(found), found.stores, found.config, log));
  return delivered;
}

Result<Deliveries> missing_in_launcher_folder(const DistributedCheckpoint& found) {
  auto files = missing_here(found.point);
  if (!files.empty() && found.stores.by_id.at(StoreId()).machines.empty()) {
    return Error{ErrorCode::kConfig, "this machine is not in the cluster file",
                 "the others cannot send it the missing files",
                 "add an entry with this machine's address"};
  }
  return files;
}

}  // namespace motley
