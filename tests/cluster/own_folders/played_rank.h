// A rank of an emulated launch: its tensors, its events, and its replicator if it has one.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/progress_counter.h"
#include "checkpoint/save/shard_writer.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"
#include "protocol/protocol.h"
#include "tests/cluster/own_folders/played_channel.h"
#include "tests/support/late_transport.h"
#include "worker/replication/folder_replicator.h"

namespace motley::testing {

// Name prefixes of parameters, and of their optimizer moments.
inline constexpr const char* kTensorParts[] = {"", "exp_avg/"};

// The tensors of a rank in a version; another version has other values.
[[nodiscard]] std::vector<OwnedTensor> tensors_of(
    const Plan& plan, const ModelSpec& model, int rank, const std::string& part, int version);

// The ranks' events, for the launcher's thread.
class RankEvents {
 public:
  // Thread-safe.
  void add(Rank rank, const Json& event);
  // nullopt if none arrives within `wait_s`.
  [[nodiscard]] std::optional<std::pair<int, Json>> next(double wait_s);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int, Json>> events_;
};

// The constructor's arguments must outlive it.
struct PlayedRank {
  PlayedRank(Transport& transport, Rank self, RankEvents& events);
  ~PlayedRank();  // also in the middle of an operation

  LateTransport late;
  PlayedChannel channel;
  ProgressCounter work;
  Job job;
  std::unique_ptr<FolderReplicator> replicator;  // last, so that it is destroyed first
};

}  // namespace motley::testing
