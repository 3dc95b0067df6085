#include "worker/replication/transfer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/replication/folder_id.h"
#include "checkpoint/replication/intact_file.h"
#include "checkpoint/replication/restored_view.h"
#include "checkpoint/replication/shard_set.h"
#include "checkpoint/transfer/file_transfer.h"
#include "comm/frames/frame_link.h"
#include "worker/group/join_ranks.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// The first error of several threads; it stops the others.
class FirstError {
 public:
  void take(const Result<void>& result) {
    if (result.ok()) return;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = result.error();
    stop_.request_stop();
  }

  [[nodiscard]] std::stop_token stop() const { return stop_.get_token(); }

  [[nodiscard]] Result<void> result() {
    const std::lock_guard lock(mutex_);
    return error_ ? Result<void>(*error_) : Result<void>();
  }

 private:
  std::mutex mutex_;
  std::optional<Error> error_;  // guarded by mutex_
  std::stop_source stop_;
};

class Mover {
 public:
  Mover(const Job& job, const TransferOrder& order, ProgressCounter& work)
      : place_{job.run_dir, job.launch, order.manifest.state.step},
        run_id_(job.run_id),
        order_(order),
        work_(work),
        task_(work, "preparing its part of the checkpoint", own_bytes()) {}

  // Handles the files that are already on this machine.
  Result<void> begin() {
    if (order_.step_metadata) {
      if (!run_id_.empty()) MOTLEY_TRY(write_run_id(place_.run_dir, run_id_));
      return adopt_shards(place_.run_dir, place_.launch, *order_.step_metadata, &giving_);
    }
    return order_.makes_restored_view ? begin_to_read() : Result<void>();
  }

  // The reason why the shards are read in place because no view could be created; "" = there is a
  // view.
  [[nodiscard]] const std::string& no_view() const { return no_view_; }

  // One thread sends and one per peer receives, so that no transfer waits for a third rank.
  Result<void> move(FrameLink& link, const StallTimeout& stall_timeout) {
    FirstError failed;
    {
      std::vector<std::jthread> threads;
      threads.emplace_back([&, mine = link]() mutable { send_all(mine, stall_timeout, failed); });
      std::set<Rank> peers;
      for (const TransferItem& move : order_.incoming) peers.insert(move.peer);
      for (const Rank peer : peers) {
        threads.emplace_back(
            [&, peer, mine = link]() mutable { receive_all(mine, peer, stall_timeout, failed); });
      }
    }
    return failed.result();
  }

  Result<void> end() {
    return order_.makes_restored_view && !order_.incoming.empty() ? name_files() : Result<void>();
  }

 private:
  // A view whose files are all local is complete at once. If it cannot be created, for example on a
  // full disk, the folder that holds the files is read instead, which needs no disk space.
  Result<void> begin_to_read() {
    bool is_part_enough = order_.incoming.empty();
    const fs::path part = checkpoint_folder(place_.run_dir, place_.step);
    std::vector<fs::path> linked;
    for (const std::string& name : order_.linked) {
      MOTLEY_ASSIGN(linked.emplace_back(), path_here(name, work_));
      is_part_enough = is_part_enough && linked.back().parent_path() == part;
    }
    const Result<void> made = make_view(linked);
    if (made.ok() || !is_part_enough || !is_in_shard_set(place_, needed_manifest())) return made;
    MOTLEY_TRY(discard_restored_view(place_));
    no_view_ = fmt::format("{}: {}", made.error().what, made.error().cause);
    return {};
  }

  Result<void> make_view(const std::vector<fs::path>& linked) {
    MOTLEY_TRY(begin_restored_view(place_));
    for (const fs::path& path : linked) MOTLEY_TRY(link_into_restored_view(place_, path));
    return order_.incoming.empty() ? name_files() : Result<void>();
  }

  [[nodiscard]] Manifest needed_manifest() const {
    Manifest manifest = order_.manifest;
    std::erase_if(manifest.files, [&](const WrittenFile& file) { return !is_in_view(file.name); });
    return manifest;
  }

  [[nodiscard]] Result<void> name_files() const {
    Manifest manifest = needed_manifest();
    std::vector<RequiredFile> needs;
    for (const WrittenFile& file : manifest.files) needs.push_back({file, {}});
    return end_restored_view(place_, std::move(manifest), needs);
  }

  [[nodiscard]] fs::path target() const {
    return order_.makes_restored_view ? restored_view_folder(place_)
                                      : checkpoint_folder(place_.run_dir, place_.step);
  }

  [[nodiscard]] const WrittenFile& file_of(const std::string& name) const {
    return *std::ranges::find(order_.manifest.files, name, &WrittenFile::name);
  }

  [[nodiscard]] bool is_in_view(const std::string& name) const {
    return std::ranges::count(order_.linked, name) > 0 ||
           std::ranges::count(order_.incoming, name, &TransferItem::file) > 0;
  }

  // The bytes of local files to verify, and of incoming files.
  [[nodiscard]] std::uint64_t own_bytes() const {
    std::uint64_t bytes = 0;
    for (const WrittenFile& file : order_.manifest.files) {
      if (is_in_view(file.name)) bytes += file.bytes;
    }
    return bytes;
  }

  [[nodiscard]] Result<fs::path> path_here(const std::string& name,
                                           ProgressCounter& counter,
                                           const std::stop_token& stop = {}) const {
    const auto known = std::ranges::find(order_.manifest.files, name, &WrittenFile::name);
    FileSearch found;
    if (known != order_.manifest.files.end()) {
      MOTLEY_ASSIGN(found, find_file(place_.run_dir, place_.step, *known, &counter, stop));
    }
    if (found.intact) return *found.intact;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} of step {} is no longer intact in {}", name, place_.step,
                             place_.run_dir.string()),
                 "it was intact when the machines reported it", "resume again"};
  }

  [[nodiscard]] FileOrder order_of(const TransferItem& move) const {
    FileOrder order{.stream = move.stream, .step = place_.step, .file = file_of(move.file)};
    if (!move.tensors.empty()) order.tensors.emplace(move.tensors.begin(), move.tensors.end());
    return order;
  }

  void send_all(FrameLink& link, const StallTimeout& stall_timeout, FirstError& failed) {
    for (const TransferItem& move : order_.outgoing) {
      if (failed.stop().stop_requested()) return;
      const Result<fs::path> path = path_here(move.file, giving_, failed.stop());
      // Also for a missing file, so that the receiver gets the error.
      const fs::path named = path.ok() ? *path : fs::path(place_.run_dir) / move.file;
      failed.take(send_file(link, move.peer, order_of(move), named, TransferRate{}, stall_timeout,
                            failed.stop(), &giving_));
    }
  }

  void receive_all(FrameLink& link,
                   Rank peer,
                   const StallTimeout& stall_timeout,
                   FirstError& failed) const {
    for (const TransferItem& move : order_.incoming) {
      if (move.peer != peer) continue;
      if (failed.stop().stop_requested()) return;
      failed.take(receive(link, move, stall_timeout, failed.stop()));
    }
  }

  Result<void> receive(FrameLink& link,
                       const TransferItem& move,
                       const StallTimeout& stall_timeout,
                       const std::stop_token& stop) const {
    if (!order_.makes_restored_view) {
      return receive_into_shards(link, move.peer, order_of(move), {target(), place_.launch},
                                 TransferRate{}, stall_timeout, stop, &work_);
    }
    return receive_file(link, move.peer, order_of(move), target() / move.file, TransferRate{},
                        stall_timeout, stop, &work_);
  }

  const SaveLocation place_;
  const std::string run_id_;
  const TransferOrder& order_;
  ProgressCounter& work_;
  ProgressCounter giving_{work_};  // not part of this task: receivers count these bytes
  const ProgressCounter::Task task_;
  std::string no_view_;
};

}  // namespace

Result<void> transfer_files(const Job& job,
                            const TransferOrder& order,
                            LauncherChannel& launcher,
                            ProgressCounter& work) {
  Mover mover(job, order, work);
  MOTLEY_TRY(mover.begin());
  if (!mover.no_view().empty()) {
    launcher.send({{"event", kReadsPartEvent}, {"cause", mover.no_view()}});
  }
  const double timeout_s = job.config.comm.timeout_s;
  MOTLEY_ASSIGN(const auto transport,
                join_ranks(job, order.self, order.rank_count, launcher, timeout_s));
  FrameLink link(*transport, order.self, epoch_of(job), /*plan_hash=*/0);
  launcher.send({{"event", "ready"}});
  MOTLEY_TRY(mover.move(link, StallTimeout(timeout_s, launcher.group_progress_clock())));
  MOTLEY_TRY(mover.end());
  disconnect_ranks(link, order.self, order.rank_count, 0, launcher.group_progress_clock());
  return {};
}

}  // namespace motley
