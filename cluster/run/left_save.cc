#include "cluster/run/left_save.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/intact_file.h"
#include "cluster/run/save_header.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

struct LeftSave {
  CheckpointState progress;
  std::map<int, Shard> shards;  // by rank
};

// The save, if every rank has reported the same state of it once.
std::optional<LeftSave> complete_save(const std::vector<ShardReport>& reports,
                                      std::size_t rank_count) {
  if (reports.empty()) return std::nullopt;
  LeftSave save{.progress = reports.front().state};
  for (const ShardReport& report : reports) {
    if (!has_same_progress(save.progress, report.state)) return std::nullopt;
    if (std::cmp_greater_equal(report.shard.rank, rank_count)) return std::nullopt;
    if (!save.shards.emplace(report.shard.rank, report.shard).second) return std::nullopt;
  }
  return save.shards.size() == rank_count ? std::optional(std::move(save)) : std::nullopt;
}

// Complete saves that are newer than all checkpoints, the newest first.
std::vector<LeftSave> left_saves(const fs::path& run_dir,
                                 const SaveHeader& header,
                                 const std::vector<LeftReport>& elsewhere) {
  std::map<std::int64_t, std::vector<ShardReport>, std::greater<>> by_step;
  const std::vector<LeftReport> here = left_reports(run_dir);
  for (const std::vector<LeftReport>* reports : {&here, &elsewhere}) {
    for (const LeftReport& left : *reports) {
      if (left.launch != header.launch) continue;
      by_step[left.report.state.step].push_back(left.report);
    }
  }
  const auto checkpoints = list_checkpoints(run_dir);
  std::vector<LeftSave> saves;
  for (const auto& [step, reports] : by_step) {
    if (!checkpoints.empty() && step <= checkpoints.back().step) continue;
    auto save = complete_save(reports, header.machines.size());
    if (save) saves.push_back(*std::move(save));
  }
  return saves;
}

Result<void> verify(const fs::path& run_dir, const SaveHeader& header, const LeftSave& save) {
  const fs::path folder = partial_folder({run_dir, header.launch, save.progress.step});
  for (const auto& [rank, shard] : save.shards) {
    if (header.elsewhere.ranks.contains(rank)) continue;
    for (const WrittenFile* file : {&shard.model, &shard.optimizer}) {
      MOTLEY_ASSIGN(const bool intact, is_intact(folder / file->name, *file, nullptr));
      if (intact) continue;
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} is damaged", (folder / file->name).string()),
                   "its bytes are not those that were written", ""};
    }
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> left_save(const fs::path& run_dir) {
  const Result<SaveHeader> header = read_save_header(run_dir);
  if (!header.ok()) return std::nullopt;
  const std::vector<LeftSave> saves = left_saves(run_dir, *header, {});
  return saves.empty() ? std::nullopt : std::optional(saves.front().progress.step);
}

std::optional<std::int64_t> commit_left_save(const fs::path& run_dir,
                                             const Log& log,
                                             const std::vector<LeftReport>& elsewhere) {
  const Result<SaveHeader> header = read_save_header(run_dir);
  if (!header.ok()) return std::nullopt;
  for (const LeftSave& save : left_saves(run_dir, *header, elsewhere)) {
    const std::int64_t step = save.progress.step;
    Result<void> done = verify(run_dir, *header, save);
    if (done.ok()) {
      const auto committed = commit_save(run_dir, *header, save.progress, save.shards);
      if (committed.ok()) {
        log.info(fmt::format(
            "step {} was saved by the workers of a launcher that is gone; it is committed now",
            step));
        return step;
      }
      done = committed.error();
    }
    log.warn(
        fmt::format("step {}, saved by the workers of a launcher that is gone, is not used: "
                    "{}: {}",
                    step, done.error().what, done.error().cause));
  }
  return std::nullopt;
}

}  // namespace motley
