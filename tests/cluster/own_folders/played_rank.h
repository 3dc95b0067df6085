// A rank of a launch that is played: what it holds, what it says, and the keeper that it may be.
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
#include "base/work_counter.h"
#include "checkpoint/save/shard_writer.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"
#include "protocol/protocol.h"
#include "tests/cluster/own_folders/played_channel.h"
#include "tests/support/late_transport.h"
#include "worker/keep/folder_keeper.h"

namespace motley::testing {

// Before the names of parameters, and of what the optimizer keeps of them.
inline constexpr const char* kTensorParts[] = {"", "exp_avg/"};

// Those of a rank, as they are in a version: another version, other values.
[[nodiscard]] std::vector<OwnedTensor> tensors_of(
    const Plan& plan, const ModelSpec& model, int rank, const std::string& part, int version);

// What the ranks say, for the launcher's thread.
class RankEvents {
 public:
  // Any thread.
  void add(Rank rank, const Json& event);
  // Nothing when none comes in time.
  [[nodiscard]] std::optional<std::pair<int, Json>> next(double wait_s);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int, Json>> events_;
};

// What is given must outlive it.
struct PlayedRank {
  PlayedRank(Transport& transport, Rank self, RankEvents& events);
  ~PlayedRank();  // ends, whatever is under way

  LateTransport late;
  PlayedChannel channel;
  WorkCounter work;
  Job job;
  std::unique_ptr<FolderKeeper> keeper;  // last, so that it ends first
};

}  // namespace motley::testing
