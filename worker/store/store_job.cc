#include "worker/store/store_job.h"

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/system/privacy.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/run_lock.h"
#include "checkpoint/store/look.h"
#include "protocol/message_fields.h"
#include "protocol/store_message.h"
#include "worker/store/move_files.h"

namespace motley {
namespace {

constexpr const char* kSource = "the order to a store";

Result<void> look(const Job& job, LauncherChannel& launcher, WorkCounter& work) {
  MOTLEY_ASSIGN(LookOrder order, look_from_json(job.options["look"], kSource));
  launcher.send({{"event", "ready"}});
  MOTLEY_ASSIGN(const StorePlace place,
                find_store({job.run_dir, order.own_dir, job.launch}, order.if_absent));
  if (place.is_shared) order.question = {};  // the launcher looks there itself
  MOTLEY_ASSIGN(const StoreAnswer answer, look_into_store(place, order.question, &work));
  for (const Json& event : store_events(answer)) launcher.send(event);
  return {};
}

// What the launch's keeper of the folder would have removed with the next save. That one has ended.
Result<void> prune(const Job& job, LauncherChannel& launcher) {
  MOTLEY_ASSIGN(const std::vector<std::int64_t> kept, counts_of(job.options, "prune", kSource));
  launcher.send({{"event", "ready"}});
  const Log log("", LogLevel::kWarn);
  MOTLEY_ASSIGN([[maybe_unused]] const auto lock, RunLock::join(job.run_dir, job.launch, log));
  return prune_to(job.run_dir, {kept.begin(), kept.end()}, job.launch);
}

}  // namespace

Result<void> run_store_job(const Job& job, LauncherChannel& launcher, WorkCounter& work) {
  if (job.options.contains("look")) return look(job, launcher, work);
  if (job.options.contains("prune")) return prune(job, launcher);
  if (!job.options.contains("move")) {
    return Error{ErrorCode::kCorrupt, "an order to a store is none", "",
                 "use the same version of Motley on every machine"};
  }
  MOTLEY_ASSIGN(const MoveOrder order, move_from_json(job.options["move"], kSource));
  keep_files_private(job.run_dir);
  return move_files(job, order, launcher, work);
}

}  // namespace motley
