// SaveFollower: handles a run's saves. Commits a checkpoint once all ranks have written their
// shards, notifies the folder replicators, and reports the outcome.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/checkpoint_committer.h"
#include "cluster/run/folder_replicators.h"
#include "cluster/run/ready_run.h"
#include "record/run_event.h"

namespace motley {

// One owner thread.
class SaveFollower {
 public:
  // `step`: nothing = the last one done. `rank`: the rank concerned; -1 = none in particular.
  using EmitEvent = std::function<void(
      RunEventKind kind, std::optional<std::int64_t> step, const std::string& line, int rank)>;

  // The run must outlive this object. `send`: sends a message to a worker of the run.
  SaveFollower(const ReadyRun& run, FolderReplicators::Send send, EmitEvent emit_event);

  // Sets the data that the run reads, for manifests. REQUIRES: no save has ended.
  void set_data(DataFingerprint fingerprint);

  // Handles an event of any kind; those not about saves are ignored. A failed save is reported and
  // is not an error; an invalid event is.
  [[nodiscard]] Result<void> on_event(int worker, const std::string& kind, const Json& event);

  // The newest one committed by this launch.
  [[nodiscard]] const std::optional<std::filesystem::path>& checkpoint() const {
    return checkpoint_;
  }

  // Whether checkpoints were removed from the launcher's folder after the last list of retained
  // ones was sent to the machines' own folders.
  [[nodiscard]] bool machines_have_stale() const { return machines_have_stale_; }

  // The error of the last save if it failed; at the end of a run it is the run's error.
  [[nodiscard]] std::optional<Error> unsaved() const;

 private:
  [[nodiscard]] Result<void> end_save(Result<std::optional<SaveOutcome>> ended);
  void on_store_failed(int worker, const Json& event) const;
  [[nodiscard]] Result<void> on_copied(int worker, const Json& event);
  [[nodiscard]] Result<void> on_copy_failed(int worker, const Json& event);
  void warn_of_stale(const Error& error) const;
  void warn(const std::string& line, int rank = -1) const;
  [[nodiscard]] std::string last_saved_text() const;

  const ReadyRun& run_;
  const EmitEvent emit_event_;
  CheckpointCommitter committer_;
  FolderReplicators replicators_;
  bool machines_have_stale_ = false;
  std::optional<Error> unsaved_;
  std::optional<std::filesystem::path> checkpoint_;
};

}  // namespace motley
