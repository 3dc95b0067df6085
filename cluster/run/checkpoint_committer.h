// CheckpointCommitter: collects the ranks' reports of a step's save. After the last one it commits
// the checkpoint, or deletes the partial files if a rank could not write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "cluster/run/save_header.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

// The result of a save. Either it is committed, or its files are deleted and the previous
// checkpoints remain.
struct SaveOutcome {
  std::int64_t step = 0;
  std::optional<std::filesystem::path> folder;  // committed
  std::optional<Error> failure;                 // why it was not committed
  std::optional<int> failed_rank;               // if exactly one of several ranks failed
  std::optional<Error> stale;                   // why older checkpoints could not be removed
};

// The rule for the checkpoints to retain beside a new one, among these: the newest and every
// so many by the configuration, the one of the best evaluation, and the last one before the decay
// of the learning rate.
[[nodiscard]] RetentionPolicy retention_policy(const Config& config,
                                               const std::vector<CheckpointInfo>& checkpoints);

// The steps to retain by that rule when a run resumes after step `at`, including that one. Later
// ones are of lost machines and could not be resumed; they are retained until the run has saved
// again.
[[nodiscard]] std::set<std::int64_t> retained_with(std::int64_t at,
                                                   const std::vector<CheckpointInfo>& checkpoints,
                                                   const Config& config);

class CheckpointCommitter {
 public:
  // `launch`: as launch_text. `model`: for its hash, family, size and config.json. `elsewhere`: the
  // ranks that write to folders of other machines.
  CheckpointCommitter(std::filesystem::path run_dir,
                      std::string launch,
                      const Config& config,
                      const ModelSpec& model,
                      const Plan& plan,
                      std::set<int> elsewhere = {});

  // The data recorded in the manifests from now on. Writes the launch's SaveHeader.
  [[nodiscard]] Result<void> set_data(DataFingerprint data);

  // Excludes these steps from pruning: checkpoints that survive the loss of any one machine, or
  // will once they are copied.
  void retain_always(std::set<std::int64_t> steps) { always_retained_ = std::move(steps); }

  // Removes the checkpoints that need not be retained beside the newest one committed here; no
  // effect before the first commit. Each commit calls it.
  [[nodiscard]] Result<void> prune() const;

  // Handles a worker's "shard" or "shard_failed" event. Returns the outcome of the save if it was
  // the last event of its step. A full or unwritable disk is an outcome, not an error. kCorrupt if
  // the event is malformed, kInternal if ranks disagree about the state.
  [[nodiscard]] Result<std::optional<SaveOutcome>> add_shard(int rank, const Json& event);
  [[nodiscard]] Result<std::optional<SaveOutcome>> add_failure(int rank, const Json& event);

 private:
  struct Open {
    std::optional<CheckpointState> progress;  // from the first shard
    std::map<int, Shard> shards;              // by rank
    std::map<int, Error> failures;            // by rank
  };

  [[nodiscard]] std::optional<SaveOutcome> end_when_complete(std::int64_t step);
  // With config.json, which a package may fail to provide.
  [[nodiscard]] Result<SaveHeader> header() const;
  [[nodiscard]] Result<std::filesystem::path> commit(const Open& open) const;

  std::filesystem::path run_dir_;
  Config config_;
  std::shared_ptr<const Package> package_;  // null if the model is not a package
  SaveHeader header_;                       // without config.json
  std::set<std::int64_t> always_retained_;
  std::optional<std::int64_t> newest_;  // committed here
  std::map<std::int64_t, Open> open_;   // by step
};

}  // namespace motley
