#include "worker/store/store_job.h"

#include "base/json.h"
#include "base/system/privacy.h"
#include "checkpoint/store/look.h"
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
  std::uint64_t bytes = 0;
  if (order.question.wanted) {
    for (const WrittenFile& file : order.question.wanted->files) bytes += file.bytes;
  }
  const WorkCounter::Task verifying(work, "verifying its part of the checkpoint", bytes);
  MOTLEY_ASSIGN(const StoreAnswer answer, look_into_store(place, order.question, &work));
  for (const Json& event : store_events(answer)) launcher.send(event);
  return {};
}

}  // namespace

Result<void> run_store_job(const Job& job, LauncherChannel& launcher, WorkCounter& work) {
  if (job.options.contains("look")) return look(job, launcher, work);
  if (!job.options.contains("move")) {
    return Error{ErrorCode::kCorrupt, "an order to a store is none", "",
                 "use the same version of Motley on every machine"};
  }
  MOTLEY_ASSIGN(const MoveOrder order, move_from_json(job.options["move"], kSource));
  keep_files_private(job.run_dir);
  return move_files(job, order, launcher, work);
}

}  // namespace motley
