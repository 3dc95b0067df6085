// FolderReplicators: the folder replicators of a run: the messages about saves to them, and their
// reports. A replicator is the rank that maintains its machine's own folder. One owner thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "cluster/run/ready_run.h"

namespace motley {

class FolderReplicators {
 public:
  using Send = std::function<void(int worker, const Json& message)>;

  // A replicator first receives the checkpoint from which the run resumes, so that its folder
  // contains its part even if it missed the commit.
  FolderReplicators(const ReadyRun& run, Send send);

  // Adds a worker that reported being a replicator.
  void add(int worker);

  // Notify all replicators. kCorrupt if the committed checkpoint cannot be read.
  [[nodiscard]] Result<void> notify_committed(const std::filesystem::path& folder);
  void notify_dropped(std::int64_t step);

  // Handle a replicator's "copied" event (all files of its folder for the step are on another
  // machine) and its "copy_failed" event.
  [[nodiscard]] Result<void> add_copied(int worker, const Json& event);
  [[nodiscard]] Result<void> add_failed(const Json& event);

  // The checkpoints to retain in case one machine is lost: the last one with all of its copies, and
  // the one whose copies are under way.
  [[nodiscard]] std::set<std::int64_t> safe_steps() const;

 private:
  [[nodiscard]] std::vector<std::int64_t> retained_steps() const;

  const std::filesystem::path run_dir_;
  const std::optional<CheckpointMetadata> resumed_;
  const Send send_;
  const std::map<int, std::vector<std::string>> files_of_;
  const std::set<std::pair<int, int>> copies_;  // from replicator to replicator
  std::set<int> workers_;
  // By step that waits for copies: the completed copies.
  std::map<std::int64_t, std::set<std::pair<int, int>>> copied_;
  std::optional<std::int64_t> safe_;  // the last one with all copies
};

}  // namespace motley
