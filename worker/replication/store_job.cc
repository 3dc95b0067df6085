#include "worker/replication/store_job.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/result.h"
#include "base/system/privacy.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/lock/run_lock.h"
#include "checkpoint/replication/inventory.h"
#include "protocol/message_fields.h"
#include "protocol/store_message.h"
#include "worker/replication/transfer_files.h"

namespace motley {
namespace {

constexpr const char* kSource = "the order to a store";

Result<void> look(const Job& job, LauncherChannel& launcher, ProgressCounter& work) {
  MOTLEY_ASSIGN(InventoryOrder order, inventory_order_from_json(job.options["look"], kSource));
  launcher.send({{"event", "ready"}});
  MOTLEY_ASSIGN(const StoreLocation location,
                find_store({job.run_dir, order.own_dir, job.launch}, order.if_absent));
  if (location.is_shared) order.store_query = {};  // the launcher inspects it itself
  MOTLEY_ASSIGN(const StoreContents contents, take_inventory(location, order.store_query, &work));
  for (const Json& event : store_events(contents)) launcher.send(event);
  return {};
}

// Performs the removal that the launch's replicator would do at the next save, which no longer
// comes.
Result<void> prune(const Job& job, LauncherChannel& launcher) {
  MOTLEY_ASSIGN(const std::vector<std::int64_t> kept, counts_of(job.options, "prune", kSource));
  launcher.send({{"event", "ready"}});
  const Log log("", LogLevel::kWarn);
  MOTLEY_ASSIGN([[maybe_unused]] const auto lock, RunLock::join(job.run_dir, job.launch, log));
  return prune_to(job.run_dir, {kept.begin(), kept.end()}, job.launch);
}

// The launch that holds the folder. A machine's own folder is not acquired before training: a
// launch acquires a folder once, and its replicator does so (FolderReplicator::open).
std::optional<LaunchRecord> holder_of(const std::string& run_dir) {
  return read_launch_record(run_dir, last_launch(run_dir));
}

// If another launch acquires the folder meanwhile, it removes the files that are being moved for
// this one.
Result<void> transfer_shards(const Job& job, LauncherChannel& launcher, ProgressCounter& work) {
  MOTLEY_ASSIGN(const TransferOrder order, transfer_order_from_json(job.options["move"], kSource));
  const auto before = holder_of(job.run_dir);
  keep_files_private(job.run_dir);
  Result<void> moved = transfer_files(job, order, launcher, work);
  const auto after = holder_of(job.run_dir);
  const bool has_come =
      after && after->launch != job.launch && (!before || before->launch != after->launch);
  if (moved.ok() || !has_come) return moved;
  return Error{ErrorCode::kPeer, fmt::format("another launcher runs in {}", job.run_dir),
               fmt::format("{}; a run folder has one launcher at a time", describe_launch(*after)),
               "wait for its end or end it, or choose another folder with --run"};
}

}  // namespace

Result<void> run_store_job(const Job& job, LauncherChannel& launcher, ProgressCounter& work) {
  if (job.options.contains("look")) return look(job, launcher, work);
  if (job.options.contains("prune")) return prune(job, launcher);
  if (!job.options.contains("move")) {
    return Error{ErrorCode::kCorrupt, "malformed order to a store", "",
                 "use the same version of Motley on every machine"};
  }
  return transfer_shards(job, launcher, work);
}

}  // namespace motley
