#include "worker/store/move_files.h"

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

#include "checkpoint/store/folder_id.h"
#include "checkpoint/store/part.h"
#include "checkpoint/store/view.h"
#include "checkpoint/store/whole_file.h"
#include "checkpoint/transfer/file_transfer.h"
#include "comm/frames/frame_link.h"
#include "worker/group/join_ranks.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// The first error of several threads, which ends the others.
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
  Mover(const Job& job, const MoveOrder& order, WorkCounter& work)
      : place_{job.run_dir, job.launch, order.manifest.state.step},
        run_id_(job.run_id),
        order_(order),
        work_(work) {}

  // What lies here.
  Result<void> begin() {
    if (order_.texts) {
      if (!run_id_.empty()) MOTLEY_TRY(write_run_id(place_.run_dir, run_id_));
      return adopt_part(place_.run_dir, place_.launch, *order_.texts, &work_);
    }
    if (!order_.makes_view) return {};
    MOTLEY_TRY(begin_view(place_));
    for (const std::string& name : order_.linked) {
      MOTLEY_ASSIGN(const fs::path path, path_here(name));
      MOTLEY_TRY(link_into_view(place_, path));
    }
    return {};
  }

  // One thread sends; one for each of the others receives, so that nobody waits for a third.
  Result<void> move(FrameLink& link, const Patience& patience) {
    const WorkCounter::Task moving(work_, "moving parts of the checkpoint", incoming_bytes());
    FirstError failed;
    {
      std::vector<std::jthread> threads;
      threads.emplace_back([&, mine = link]() mutable { send_all(mine, patience, failed); });
      std::set<Rank> peers;
      for (const FileMove& move : order_.incoming) peers.insert(move.peer);
      for (const Rank peer : peers) {
        threads.emplace_back(
            [&, peer, mine = link]() mutable { receive_all(mine, peer, patience, failed); });
      }
    }
    return failed.result();
  }

  Result<void> end() {
    if (!order_.makes_view) return {};
    std::vector<FileNeed> needs;
    for (const WrittenFile& file : order_.manifest.files) {
      if (is_in_view(file.name)) needs.push_back({file, {}});
    }
    return end_view(place_, order_.manifest, needs);
  }

 private:
  [[nodiscard]] fs::path target() const {
    return order_.makes_view ? view_folder(place_) : checkpoint_folder(place_.run_dir, place_.step);
  }

  [[nodiscard]] const WrittenFile& file_of(const std::string& name) const {
    return *std::ranges::find(order_.manifest.files, name, &WrittenFile::name);
  }

  [[nodiscard]] bool is_in_view(const std::string& name) const {
    return std::ranges::count(order_.linked, name) > 0 ||
           std::ranges::count(order_.incoming, name, &FileMove::file) > 0;
  }

  [[nodiscard]] std::uint64_t incoming_bytes() const {
    std::uint64_t bytes = 0;
    for (const FileMove& move : order_.incoming) bytes += file_of(move.file).bytes;
    return bytes;
  }

  [[nodiscard]] Result<fs::path> path_here(const std::string& name,
                                           const std::stop_token& stop = {}) const {
    const auto known = std::ranges::find(order_.manifest.files, name, &WrittenFile::name);
    FoundFile found;
    if (known != order_.manifest.files.end()) {
      MOTLEY_ASSIGN(found, find_file(place_.run_dir, place_.step, *known, &work_, stop));
    }
    if (found.whole) return *found.whole;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} of step {} is not whole in {} any more", name, place_.step,
                             place_.run_dir.string()),
                 "it was when the machines were asked", "resume again"};
  }

  [[nodiscard]] FileOrder order_of(const FileMove& move) const {
    FileOrder order{.stream = move.stream, .step = place_.step, .file = file_of(move.file)};
    if (!move.tensors.empty()) order.tensors.emplace(move.tensors.begin(), move.tensors.end());
    return order;
  }

  void send_all(FrameLink& link, const Patience& patience, FirstError& failed) const {
    for (const FileMove& move : order_.outgoing) {
      if (failed.stop().stop_requested()) return;
      const Result<fs::path> path = path_here(move.file, failed.stop());
      // The receiver is told what became of a file that is gone.
      const fs::path named = path.ok() ? *path : fs::path(place_.run_dir) / move.file;
      failed.take(send_file(link, move.peer, order_of(move), named, TransferPace{}, patience,
                            failed.stop(), &work_));
    }
  }

  void receive_all(FrameLink& link, Rank peer, const Patience& patience, FirstError& failed) const {
    for (const FileMove& move : order_.incoming) {
      if (move.peer != peer) continue;
      if (failed.stop().stop_requested()) return;
      failed.take(receive(link, move, patience, failed.stop()));
    }
  }

  Result<void> receive(FrameLink& link,
                       const FileMove& move,
                       const Patience& patience,
                       const std::stop_token& stop) const {
    if (!order_.makes_view) {
      return receive_into_part(link, move.peer, order_of(move), {target(), place_.launch},
                               TransferPace{}, patience, stop, &work_);
    }
    return receive_file(link, move.peer, order_of(move), target() / move.file, TransferPace{},
                        patience, stop, &work_);
  }

  const SavePlace place_;
  const std::string run_id_;
  const MoveOrder& order_;
  WorkCounter& work_;
};

}  // namespace

Result<void> move_files(const Job& job,
                        const MoveOrder& order,
                        LauncherChannel& launcher,
                        WorkCounter& work) {
  Mover mover(job, order, work);
  MOTLEY_TRY(mover.begin());
  const double timeout_s = job.config.comm.timeout_s;
  MOTLEY_ASSIGN(const auto transport,
                join_ranks(job, order.self, order.rank_count, launcher, timeout_s));
  FrameLink link(*transport, order.self, epoch_of(job), /*plan_hash=*/0);
  launcher.send({{"event", "ready"}});
  MOTLEY_TRY(mover.move(link, Patience(timeout_s, launcher.group_progress())));
  MOTLEY_TRY(mover.end());
  part_ranks(link, order.self, order.rank_count, 0, launcher.group_progress());
  return {};
}

}  // namespace motley
