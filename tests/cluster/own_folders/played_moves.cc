#include "tests/cluster/own_folders/played_moves.h"

#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/progress_counter.h"
#include "checkpoint/replication/restored_view.h"
#include "protocol/protocol.h"
#include "protocol/transfer_message.h"
#include "tests/cluster/own_folders/played_channel.h"
#include "worker/replication/store_job.h"

namespace motley::testing {
namespace {

namespace fs = std::filesystem;

// Gives each worker all addresses once every worker has reported its own.
class Meeting {
 public:
  explicit Meeting(std::size_t workers) : addresses_(workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      channels_.emplace_back([this, i](const Json& event) { hear(i, event); });
    }
  }

  [[nodiscard]] PlayedChannel& channel(std::size_t worker) { return channels_[worker]; }

 private:
  void hear(std::size_t worker, const Json& event) {
    if (event.at("event") != "address") return;
    const std::lock_guard lock(mutex_);
    addresses_[worker] = event.at("address");
    if (++reported_ < addresses_.size()) return;
    for (PlayedChannel& channel : channels_) channel.give({{"addresses", addresses_}});
  }

  std::mutex mutex_;
  std::vector<Json> addresses_;  // guarded by mutex_
  std::size_t reported_ = 0;     // guarded by mutex_
  std::deque<PlayedChannel> channels_;
};

}  // namespace

Result<std::map<StoreId, fs::path>> play_moves(const std::vector<StoreTransfers>& transfers,
                                               const StoreInventory& stores,
                                               const fs::path& launcher_dir,
                                               const std::string& launch) {
  std::map<StoreId, fs::path> folders;
  Meeting meeting(transfers.size());
  std::vector<std::optional<Result<void>>> moved(transfers.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto dir = stores.dirs.find(transfers[i].machine);
      Job job;
      job.verb = "store";
      job.config.comm.transport = "tcp";
      job.launch = launch;
      job.run_id = stores.run;
      job.run_dir = (dir == stores.dirs.end() ? launcher_dir : dir->second).string();
      job.options = Json{{"move", transfer_order_to_json(transfers[i].order)}};
      if (transfers[i].order.makes_restored_view) {
        folders[transfers[i].store] =
            restored_view_folder({job.run_dir, launch, transfers[i].order.manifest.state.step});
      }
      threads.emplace_back([&, i, job = std::move(job)] {
        ProgressCounter work;
        moved[i] = run_store_job(job, meeting.channel(i), work);
      });
    }
  }
  for (const auto& each : moved) MOTLEY_TRY(*each);
  return folders;
}

}  // namespace motley::testing
