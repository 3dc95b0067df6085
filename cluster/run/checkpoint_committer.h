// Collects what the ranks say of a step's save and commits the checkpoint when the last has spoken,
// or takes away what was written where one of them had no room.
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
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"

namespace motley {

// How a save ended. Either it is committed, or the checkpoints before it stand and nothing of it is
// left.
struct SaveOutcome {
  std::int64_t step = 0;
  std::optional<std::filesystem::path> folder;  // committed
  std::optional<Error> failure;                 // why it is not
  std::optional<int> failed_rank;               // where one rank alone failed
  std::optional<Error> stale;                   // older checkpoints could not be removed
};

// Which checkpoints of a run stay beside a new one.
[[nodiscard]] KeepRule keep_rule(const CheckpointConfig& config);

// The steps that stay where a run goes on after step `at`, that one among them. Later ones are of
// machines that were lost; they stay until the run has saved again.
[[nodiscard]] std::set<std::int64_t> kept_beside(std::int64_t at,
                                                 const std::vector<CheckpointInfo>& checkpoints,
                                                 KeepRule rule);

class CheckpointCommitter {
 public:
  // `launch`: as launch_text. `model`: for its hash, family, size and config.json. `elsewhere`:
  // ranks that write into folders of other machines.
  CheckpointCommitter(std::filesystem::path run_dir,
                      std::string launch,
                      const Config& config,
                      const ModelSpec& model,
                      const Plan& plan,
                      std::set<int> elsewhere = {});

  // What the manifests say of the data from now on.
  void set_data(DataMark data) { common_.data = std::move(data); }

  // Of all that is removed from now on, not these: those that no one machine's loss destroys, or
  // will not once they are copied.
  void keep_always(std::set<std::int64_t> steps) { always_kept_ = std::move(steps); }

  // Removes what need not stay beside the newest that was committed here; nothing before there is
  // one. Each commit does.
  [[nodiscard]] Result<void> prune() const;

  // Takes a worker's "shard" or "shard_failed" event. Returns how the save ended when it was the
  // last of its step. A disk that is full or cannot be written is an outcome, not an error.
  // kCorrupt when the event is malformed, kInternal when ranks disagree about the state.
  [[nodiscard]] Result<std::optional<SaveOutcome>> add_shard(int rank, const Json& event);
  [[nodiscard]] Result<std::optional<SaveOutcome>> add_failure(int rank, const Json& event);

 private:
  struct Open {
    std::optional<CheckpointState> state;  // of the first shard
    std::map<int, Shard> shards;           // by rank
    std::map<int, Error> failures;         // by rank
  };

  [[nodiscard]] std::optional<SaveOutcome> end_when_complete(std::int64_t step);
  [[nodiscard]] Result<std::filesystem::path> commit(Open& open) const;

  std::filesystem::path run_dir_;
  std::string launch_;
  Config config_;
  std::shared_ptr<const Package> package_;  // null where the model is none
  std::vector<std::string> machines_;       // by rank
  CheckpointState common_;                  // what does not change from step to step
  int rank_count_;
  ShardsElsewhere elsewhere_;
  std::set<std::int64_t> always_kept_;
  std::optional<std::int64_t> newest_;  // committed here
  std::map<std::int64_t, Open> open_;   // by step
};

}  // namespace motley
