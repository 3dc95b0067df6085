// PlayedLaunch: what a launch does to the run folders of several machines, by the functions that do
// it in a run; the processes are threads, and nothing is trained. Its marks in a record
// (tests/support/disk_recording.h) are read by ToldSaves.
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

// By version: the bytes of all files of tensors, by name.
using SavedFiles = std::map<int, std::map<std::string, std::string>>;

class PlayedLaunch {
 public:
  // Takes the launcher's folder, looks for what the launch goes on from and brings its parts to the
  // machines that need them. What is given must outlive it; what is saved is added to `saved`.
  [[nodiscard]] static Result<std::unique_ptr<PlayedLaunch>> prepare(const PlayedMachines& machines,
                                                                     SavedFiles& saved);
  ~PlayedLaunch();  // ends, whatever is under way
  PlayedLaunch(const PlayedLaunch&) = delete;
  PlayedLaunch& operator=(const PlayedLaunch&) = delete;

  // The step that it goes on from; 0 = the start.
  [[nodiscard]] std::int64_t resumed_step() const;
  // The version of the parameters and moments that the ranks read there; kCorrupt where they
  // differ.
  [[nodiscard]] Result<int> resumed_version() const;

  // Brings all of the checkpoint that it goes on from into the launcher's folder, as `ckpt gather`
  // does. REQUIRES: there is one.
  [[nodiscard]] Result<void> gather();

  // The ranks have read what they go on from, and the keepers take their folders. Once, before a
  // save.
  [[nodiscard]] Result<void> start();

  // All ranks write, the launcher commits and the keepers are told.
  [[nodiscard]] Result<void> save(std::int64_t step, int version);
  // All ranks write, and nobody commits.
  [[nodiscard]] Result<void> write(std::int64_t step, int version);
  // Until the last save has all of its copies.
  [[nodiscard]] Result<void> await_copies();
  // As a training ends.
  [[nodiscard]] Result<void> finish();

 private:
  struct Impl;
  explicit PlayedLaunch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::testing
