// PlayedLaunch: the operations of a launch on the run folders of several machines, by the
// functions that a run uses. Processes are threads, and nothing is trained. ReportedSaves reads its
// markers in a record (tests/support/disk_recording.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/cluster/own_folders/played_machines.h"

namespace motley::testing {

// By version: the contents of all tensor files, by name.
using SavedFiles = std::map<int, std::map<std::string, std::string>>;

class PlayedLaunch {
 public:
  // Locks the launcher's folder, finds the restore point and moves its parts to the machines that
  // need them. Both arguments must outlive the result; saved files are added to `saved`.
  [[nodiscard]] static Result<std::unique_ptr<PlayedLaunch>> prepare(const PlayedMachines& machines,
                                                                     SavedFiles& saved);
  ~PlayedLaunch();  // also in the middle of an operation
  PlayedLaunch(const PlayedLaunch&) = delete;
  PlayedLaunch& operator=(const PlayedLaunch&) = delete;

  // The step that it resumes from; 0 = the start.
  [[nodiscard]] std::int64_t resumed_step() const;
  // The version of the parameters and moments that the ranks read there; kCorrupt if they differ.
  [[nodiscard]] Result<int> resumed_version() const;

  // Collects the complete resumed checkpoint in the launcher's folder, as `ckpt gather` does.
  // REQUIRES: there is one.
  [[nodiscard]] Result<void> gather();

  // The ranks have read the restore point, and the replicators claim their folders. Called once,
  // before a save.
  [[nodiscard]] Result<void> start();

  // All ranks write, the launcher commits and notifies the replicators.
  [[nodiscard]] Result<void> save(std::int64_t step, int version);
  // All ranks write, without a commit.
  [[nodiscard]] Result<void> write(std::int64_t step, int version);
  // Waits until the last save has all of its copies.
  [[nodiscard]] Result<void> await_copies();
  // Ends as a training does.
  [[nodiscard]] Result<void> finish();

 private:
  struct Impl;
  explicit PlayedLaunch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::testing
