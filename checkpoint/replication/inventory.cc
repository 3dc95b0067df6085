#include "checkpoint/replication/inventory.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/process_identity.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/await_workers.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/lock/run_lock.h"
#include "checkpoint/replication/folder_id.h"
#include "checkpoint/replication/intact_file.h"
#include "checkpoint/save/space.h"

namespace motley {
namespace {

// Adds the step's metadata to the answer, or the reason why it cannot be read.
void add_metadata(const CheckpointInfo& checkpoint, StoreContents& contents) {
  constexpr std::size_t kReasonBytesMax = 200;
  Result<CheckpointMetadata> step_metadata = read_metadata(checkpoint.folder);
  if (!step_metadata.ok()) {
    const Error& error = step_metadata.error();
    contents.metadata_error =
        excerpt(error.cause.empty() ? error.what : error.cause, kReasonBytesMax);
  } else if (step_metadata->step() != checkpoint.step) {
    contents.metadata_error = fmt::format("it is of step {}", step_metadata->step());
  } else {
    contents.step_metadata = *std::move(step_metadata);
  }
}

// The process that holds a machine's own folder, if it runs. One that is not visible from here is
// detected by the rank that locks the folder.
std::optional<LaunchRecord> running_holder(const std::filesystem::path& dir, std::int64_t launch) {
  auto last = read_launch_record(dir, launch);
  const bool is_held = last && last->is_known && !last->is_free &&
                       liveness_of(last->process) == ProcessLiveness::kRuns;
  return is_held ? std::move(last) : std::nullopt;
}

// The same after the end of workers that have lost their launcher. They may not know it yet.
std::optional<LaunchRecord> holder_of(const std::filesystem::path& dir, std::int64_t launch) {
  constexpr double kNotice_s = 1;
  constexpr std::chrono::milliseconds kMoment(50);
  const Deadline deadline = Deadline::after_s(kNotice_s);
  auto holder = running_holder(dir, launch);
  while (holder && !holder->is_left && !deadline.passed()) {
    std::this_thread::sleep_for(kMoment);
    holder = running_holder(dir, launch);
  }
  if (!holder || !holder->is_left) return holder;
  await_workers(dir, *holder, RunLock::Timing{}.saving_s, Log("", LogLevel::kWarn));
  return running_holder(dir, launch);
}

}  // namespace

WantedStep wanted_step(const CheckpointMetadata& step_metadata) {
  WantedStep wanted{step_metadata.step(), tensor_files(step_metadata.manifest)};
  for (WrittenFile& file : wanted.files) file.tensor_hashes.clear();
  return wanted;
}

Result<StoreContents> take_inventory(const StoreLocation& location,
                                     const StoreQuery& store_query,
                                     ProgressCounter* work) {
  StoreContents contents{.location = location, .free_bytes = free_bytes(location.dir)};
  MOTLEY_ASSIGN(contents.run, read_run_id(location.dir));
  contents.last_launch = last_launch(location.dir);
  if (!location.is_shared) {
    if (const auto holder = holder_of(location.dir, contents.last_launch)) {
      contents.lock_holder = describe_launch(*holder);
    }
    contents.left = left_reports(location.dir);
  }
  for (const CheckpointInfo& checkpoint : list_checkpoints(location.dir)) {
    contents.steps.push_back(checkpoint.step);
    // Another folder may provide the metadata if this one's is damaged.
    if (checkpoint.step == store_query.metadata_of) add_metadata(checkpoint, contents);
  }
  if (!store_query.wanted) return contents;
  const WantedStep& wanted = *store_query.wanted;
  std::optional<ProgressCounter::Task> verifying;
  if (work != nullptr) {
    verifying.emplace(*work, "verifying its part of the checkpoint",
                      bytes_to_read(location.dir, wanted.step, wanted.files));
  }
  for (const WrittenFile& file : wanted.files) {
    MOTLEY_ASSIGN(const FileSearch found, find_file(location.dir, wanted.step, file, work));
    if (found.intact) {
      contents.intact.push_back(file.name);
    } else if (found.damaged) {
      contents.damaged.push_back(file.name);
    }
  }
  return contents;
}

}  // namespace motley
