// LockAcquirer: creates the next file of `launches/`, with which a launch locks a folder
// (docs/formats/launches.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/lock/run_lock.h"

namespace motley {

class LockAcquirer {
 public:
  // The arguments must outlive it. `is_worker`: as LaunchRecord::is_of_worker.
  LockAcquirer(const std::filesystem::path& run_dir,
               const Log& log,
               RunLock::Timing timing,
               bool is_worker = false)
      : run_dir_(run_dir), log_(log), timing_(timing), is_worker_(is_worker) {}

  // Returns the launch to create a file for, or nullopt to create none. `last`: the number of the
  // last existing launch (0 = none); `there`: its record.
  using NextLaunch =
      std::function<Result<std::optional<LaunchId>>(std::int64_t last, const LaunchRecord& there)>;

  // Returns the record of the launch that now holds the folder; nullopt if `next` returned none.
  // kPeer as RunLock::acquire.
  [[nodiscard]] Result<std::optional<LaunchRecord>> acquire(const NextLaunch& next);

 private:
  // Reads into holder_; false if it must be read again.
  [[nodiscard]] Result<bool> read_holder(std::int64_t last);
  // False if the holder must be read again; kPeer if it is active.
  [[nodiscard]] Result<bool> await_free();

  const std::filesystem::path& run_dir_;
  const Log& log_;
  const RunLock::Timing timing_;
  const bool is_worker_;
  LaunchRecord holder_;  // as last read
  int half_written_ = 0;
};

}  // namespace motley
