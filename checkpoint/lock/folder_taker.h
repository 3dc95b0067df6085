// FolderTaker: the making of the next file of `launches/` by which a launch holds a folder
// (docs/formats/launches.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/launch_mark.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/lock/run_lock.h"

namespace motley {

class FolderTaker {
 public:
  // What is given must outlive it. `is_worker`: as LaunchRecord::is_of_worker.
  FolderTaker(const std::filesystem::path& run_dir,
              const Log& log,
              RunLock::Timing timing,
              bool is_worker = false)
      : run_dir_(run_dir), log_(log), timing_(timing), is_worker_(is_worker) {}

  // The launch to make a file for, where `last` is the number of the last one there (0 = none) and
  // `there` what its file says; nothing = none is to be made.
  using NextLaunch =
      std::function<Result<std::optional<LaunchId>>(std::int64_t last, const LaunchRecord& there)>;

  // The record of the launch that holds the folder from now on; nothing where `next` gave none.
  // kPeer as RunLock::take.
  [[nodiscard]] Result<std::optional<LaunchRecord>> take(const NextLaunch& next);

 private:
  // Into holder_; false where it is to be looked at again.
  [[nodiscard]] Result<bool> read_holder(std::int64_t last);
  // False where the holder is to be looked at again; kPeer where it is at work.
  [[nodiscard]] Result<bool> await_free();

  const std::filesystem::path& run_dir_;
  const Log& log_;
  const RunLock::Timing timing_;
  const bool is_worker_;
  LaunchRecord holder_;  // of the folder, when last read
  int half_written_ = 0;
};

}  // namespace motley
