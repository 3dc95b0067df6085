// FolderKeepers: those ranks of a run that keep their machine's folder, what they are told of each
// save, and what they say of it. One owner thread.
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
#include "checkpoint/store/texts.h"
#include "cluster/run/prepare.h"

namespace motley {

class FolderKeepers {
 public:
  using Send = std::function<void(int worker, const Json& message)>;

  // `resumed`: the checkpoint that this launch goes on from, which a keeper is told of first, so
  // that its folder has its part of it whatever it missed.
  FolderKeepers(const PreparedRun& run, std::optional<CheckpointMetadata> resumed, Send send);

  // The worker has said that it is one.
  void add(int worker);

  // All are told. kCorrupt when what was committed cannot be read.
  [[nodiscard]] Result<void> tell_committed(const std::filesystem::path& folder);
  void tell_dropped(std::int64_t step);

  // A keeper's "copied" event: all files of its folder are on another machine; and its
  // "copy_failed" event.
  [[nodiscard]] Result<void> add_copied(int worker, const Json& event);
  [[nodiscard]] Result<void> add_failed(const Json& event);

  // The checkpoints that must stay for one machine to be lost: the last that has all of its copies,
  // and the one whose copies are under way.
  [[nodiscard]] std::set<std::int64_t> safe_steps() const;

 private:
  [[nodiscard]] std::vector<std::int64_t> kept_steps() const;

  const std::filesystem::path run_dir_;
  const std::optional<CheckpointMetadata> resumed_;
  const Send send_;
  const std::map<int, std::vector<std::string>> files_of_;
  const std::set<std::pair<int, int>> copies_;  // from keeper to keeper
  std::set<int> workers_;
  // By step, of those that wait for copies: the copies that are there.
  std::map<std::int64_t, std::set<std::pair<int, int>>> copied_;
  std::optional<std::int64_t> safe_;  // the last that has all copies
};

}  // namespace motley
