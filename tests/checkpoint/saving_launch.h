// Saves whose file operations are recorded, and what they promise. Only in a program that
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

// A launch that saves: parameters of a given version, by ranks that write at the same time.
class SavingLaunch {
 public:
  SavingLaunch(std::filesystem::path run_dir, std::string launch, int ranks)
      : run_dir_(std::move(run_dir)), launch_(std::move(launch)), ranks_(ranks) {}

  // Of what it does it leaves marks in the log, for Promises.
  [[nodiscard]] Result<void> save(std::int64_t step, int version) const;
  // All ranks have written, and nobody commits.
  [[nodiscard]] Result<std::vector<Shard>> write(std::int64_t step, int version) const;
  [[nodiscard]] Result<void> prune() const;  // to the two newest

  // The parameters and moments of a version.
  [[nodiscard]] static std::vector<OwnedTensor> tensors(int version);

 private:
  std::filesystem::path run_dir_;
  std::string launch_;
  int ranks_;
};

// What the marks that were left before a cut promise of what is found after it.
class Promises {
 public:
  void hear(const std::string& mark);
  // "", or what is wrong with the checkpoints of the run: one that was acknowledged is missing, one
  // is listed that is damaged or holds what nobody saved for its step, a folder does not count.
  [[nodiscard]] std::string broken_by(const std::filesystem::path& run_dir) const;
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::int64_t, std::set<int>> may_be_listed_;  // versions by step
  std::set<std::int64_t> must_be_listed_;
};

}  // namespace motley::testing
