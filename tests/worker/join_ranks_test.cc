#include "worker/group/join_ranks.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "base/secret.h"
#include "plan/plan.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr double kStallTimeout_s = 20;

// The launcher of a group: sends all addresses to every rank once it knows them.
class Launcher {
 public:
  explicit Launcher(int rank_count) : addresses_(static_cast<std::size_t>(rank_count)) {}

  void take(Rank rank, const std::string& address) {
    const std::lock_guard lock(mutex_);
    addresses_[rank.index()] = address;
    ++known_;
    changed_.notify_all();
  }

  Result<Json> addresses(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const bool all =
        changed_.wait_until(lock, deadline.time(), [&] { return known_ == addresses_.size(); });
    if (!all) return Error{ErrorCode::kPeer, "a rank gave no address", "", ""};
    return Json{{"addresses", addresses_}};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> addresses_;  // [Rank]
  std::size_t known_ = 0;
};

class Channel final : public LauncherChannel {
 public:
  Channel(Launcher& launcher, Rank self) : launcher_(launcher), self_(self) {}

  void send(const Json& event) override {
    EXPECT_EQ(event.at("event"), "address");
    launcher_.take(self_, event.at("address").get<std::string>());
  }

  [[nodiscard]] Result<Json> receive(Deadline deadline, const std::string& /*what*/) override {
    return launcher_.addresses(deadline);
  }

  [[nodiscard]] const ProgressClock& group_progress_clock() const override { return progress_; }

  [[nodiscard]] bool is_to_finish() const override { return false; }

  void outlive_launcher(std::function<std::uint64_t()> /*progress*/) override {}

  [[nodiscard]] bool is_launcher_lost() const override { return false; }

 private:
  Launcher& launcher_;
  Rank self_;
  ProgressClock progress_;
};

// Gives the same answer to every receive.
class Answering final : public LauncherChannel {
 public:
  explicit Answering(Result<Json> answer) : answer_(std::move(answer)) {}

  void send(const Json& event) override { sent.push_back(event); }

  [[nodiscard]] Result<Json> receive(Deadline /*deadline*/, const std::string& /*what*/) override {
    return answer_;
  }

  [[nodiscard]] const ProgressClock& group_progress_clock() const override { return progress_; }

  [[nodiscard]] bool is_to_finish() const override { return false; }

  void outlive_launcher(std::function<std::uint64_t()> /*progress*/) override {}

  [[nodiscard]] bool is_launcher_lost() const override { return false; }

  std::vector<Json> sent;

 private:
  Result<Json> answer_;
  ProgressClock progress_;
};

Job job_with(const std::string& secret) {
  Job job;
  job.config.comm.transport = "tcp";
  job.secret = secret;
  return job;
}

TEST(JoinRanks, BringsAllRanksTogetherAndLetsThemPart) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kStep = 4;
  const std::string secret = make_secret().value();
  Launcher launcher(kRanks);
  std::vector<int> met(kRanks);
  {
    std::vector<std::jthread> threads;
    for (Rank self{0}; self.value < kRanks; ++self.value) {
      threads.emplace_back([&, self] {
        Channel channel(launcher, self);
        const auto transport = join_ranks(job_with(secret), self, kRanks, channel, kStallTimeout_s);
        ASSERT_TRUE(transport.ok()) << describe(transport.error());
        FrameLink link(**transport, self, 1, 0);
        const auto votes =
            all_gather_small(link, self, kRanks, kStep - 1, std::vector<std::byte>(1, std::byte{1}),
                             1, Deadline::after_s(kStallTimeout_s));
        ASSERT_TRUE(votes.ok()) << describe(votes.error());
        met[self.index()] = static_cast<int>(votes->size());
        disconnect_ranks(link, self, kRanks, kStep, channel.group_progress_clock());
      });
    }
  }
  EXPECT_EQ(met, std::vector<int>(kRanks, kRanks));
}

// Rank 0 leaves last: it may still have to send the result of the vote when the others say
// goodbye. Without the result they would report a lost peer.
TEST(JoinRanks, KeepsRank0UntilTheOthersHaveParted) {
  const std::string secret = make_secret().value();
  Launcher launcher(2);
  std::atomic<bool> said = false;
  std::jthread other([&] {
    Channel channel(launcher, Rank{1});
    const auto transport = join_ranks(job_with(secret), Rank{1}, 2, channel, kStallTimeout_s);
    ASSERT_TRUE(transport.ok()) << describe(transport.error());
    FrameLink link(**transport, Rank{1}, 1, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    said = true;
    disconnect_ranks(link, Rank{1}, 2, 1, channel.group_progress_clock());
  });
  Channel channel(launcher, Rank{0});
  const auto transport = join_ranks(job_with(secret), Rank{0}, 2, channel, kStallTimeout_s);
  ASSERT_TRUE(transport.ok()) << describe(transport.error());
  FrameLink link(**transport, Rank{0}, 1, 0);
  disconnect_ranks(link, Rank{0}, 2, 1, channel.group_progress_clock());
  EXPECT_TRUE(said);
}

TEST(JoinRanks, AsksNobodyWhenItIsAlone) {
  Answering launcher(Error{ErrorCode::kInternal, "it should not be asked", "", ""});
  const auto transport = join_ranks(job_with(""), Rank{0}, 1, launcher, kStallTimeout_s);
  EXPECT_TRUE(transport.ok());
  EXPECT_TRUE(launcher.sent.empty());
}

TEST(JoinRanks, RefusesAMalformedListOfAddresses) {
  const std::string secret = make_secret().value();
  for (const Json& answer :
       {Json::object(), Json{{"addresses", 5}}, Json{{"addresses", {"127.0.0.1:1"}}},
        Json{{"addresses", {"127.0.0.1:1", 7}}}, Json{{"addresses", {"a", "b", "c"}}}}) {
    Answering launcher(answer);
    const auto transport = join_ranks(job_with(secret), Rank{0}, 2, launcher, kStallTimeout_s);
    ASSERT_FALSE(transport.ok()) << answer;
    EXPECT_EQ(transport.error().code, ErrorCode::kInternal);
    EXPECT_THAT(transport.error().what, HasSubstr("malformed list of addresses"));
    EXPECT_EQ(launcher.sent.size(), 1U);
  }
}

TEST(JoinRanks, PassesOnThatTheLauncherIsSilent) {
  Answering launcher(Error{ErrorCode::kPeer, "no word", "", ""});
  const auto transport =
      join_ranks(job_with(make_secret().value()), Rank{0}, 2, launcher, kStallTimeout_s);
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().what, "no word");
}

}  // namespace
}  // namespace motley
