// Saves whose file operations are recorded, and their guarantees. Only for programs that
// tests/support/disk_recorder.cc is linked into.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/checkpoint/fixture.h"
#include "tests/support/disk_recording.h"

namespace motley::testing {

// A launch that saves parameters of a given version; its ranks write concurrently.
class SavingLaunch {
 public:
  SavingLaunch(std::filesystem::path run_dir, std::string launch, int ranks)
      : run_dir_(std::move(run_dir)), launch_(std::move(launch)), ranks_(ranks) {}

  // Saves, and adds markers to the log for Promises.
  [[nodiscard]] Result<void> save(std::int64_t step, int version) const;
  // Writes the shards of all ranks, without a commit.
  [[nodiscard]] Result<std::vector<Shard>> write(std::int64_t step, int version) const;
  [[nodiscard]] Result<void> prune() const;  // to the newest two

  // The parameters and moments of a version.
  [[nodiscard]] static std::vector<OwnedTensor> tensors(int version);

 private:
  std::filesystem::path run_dir_;
  std::string launch_;
  int ranks_;
};

// The state that the markers before a cut guarantee after it.
class Promises {
 public:
  void hear(const std::string& mark);
  // "", or the broken guarantee: an acknowledged checkpoint is missing, a listed one is damaged or
  // holds values that were not saved for its step, or a folder does not count as a checkpoint.
  [[nodiscard]] std::string broken_by(const std::filesystem::path& run_dir) const;
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::int64_t, std::set<int>> may_be_listed_;  // versions by step
  std::set<std::int64_t> must_be_listed_;
};

}  // namespace motley::testing
