// Saves of three ranks in threads, and one rank's save beside its steps.
#include "worker/train/state_saver.h"

#include <stdlib.h>

#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "checkpoint/save/shard_report.h"
#include "tests/support/rank_group.h"
#include "tests/training/held_values.h"
#include "worker/train/save_space.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr const char* kLaunch = "000003-0123456789abcdef";

class Events final : public EventSink {
 public:
  void send(const Json& event) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  }

  // The only event so far.
  [[nodiscard]] Json only() {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(events_.size(), 1U);
    return events_.empty() ? Json() : events_.front();
  }

 private:
  std::mutex mutex_;
  std::vector<Json> events_;
};

class StateSaverTest : public testing::Test {
 protected:
  using Results = std::vector<std::optional<Result<void>>>;  // [Rank]

  StateSaverTest() : group_("inproc", kRanks) {
    std::string name = (std::filesystem::temp_directory_path() / "motley-save-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    progress_.step = 10;
  }

  ~StateSaverTest() override { std::filesystem::remove_all(dir_); }

  // Each rank saves one parameter of three values; rank 1 saves `odd`.
  Results save(HeldValues& odd) {
    Results results(kRanks);
    group_.run([&](Rank self) {
      HeldValues plain;
      plain.add(ChunkId{0}, 0, "w" + std::to_string(self.value));
      HeldValues& held = self == Rank{1} ? odd : plain;
      StageState state(held.chunks(), make_optimizer(plain_sgd()), "");
      FrameLink link(group_.at(self), self, 1, 2);
      ShardWriter writer([] { return std::uint64_t{0}; }, nullptr);
      StateSaver saver = saver_of(self, kRanks, state, writer, link, events_[self.index()]);
      results[self.index()] = saver.save();
      saver.finish();
    });
    return results;
  }

  StateSaver saver_of(Rank self,
                      int rank_count,
                      StageState& state,
                      ShardWriter& writer,
                      FrameLink& link,
                      EventSink& events) {
    return {{dir_, kLaunch, self, rank_count, 0, {}},
            {state, writer, timers_[self.index()], link, events,
             [this](FeedbackKind what) {
               return what == FeedbackKind::kResidual && adds_residuals_ && adds_residuals_();
             },
             [this]() -> const CheckpointState& { return progress_; }, [] { return soon(); },
             [this] { return spare_bytes_; }, nullptr,
             [this] {
               return is_overtaken_ ? Error{ErrorCode::kPeer, "overtaken", "", ""} : Result<void>();
             }}};
  }

  [[nodiscard]] std::filesystem::path partial() const {
    return partial_folder({dir_, kLaunch, 10});
  }

  RankGroup group_;
  std::filesystem::path dir_;
  double now_s_ = 0;
  std::vector<SaveTimer> timers_{kRanks, SaveTimer(60, [this] { return now_s_; })};  // [Rank]
  CheckpointState progress_;
  Events events_[kRanks];
  std::function<bool()> adds_residuals_;
  std::uint64_t spare_bytes_ = 1000;
  bool is_overtaken_ = false;
};

HeldValues one_parameter() {
  HeldValues held;
  held.add(ChunkId{0}, 0, "w1");
  return held;
}

TEST_F(StateSaverTest, WritesThePartsOfAllRanks) {
  HeldValues held = one_parameter();
  for (const auto& saved : save(held)) EXPECT_TRUE(saved->ok());
  for (Events& events : events_) EXPECT_EQ(events.only().at("event"), "shard");
  EXPECT_TRUE(std::filesystem::exists(partial() / "model-00003-of-00003.safetensors"));
}

TEST_F(StateSaverTest, LeavesAReportOfEachPart) {
  HeldValues held = one_parameter();
  for (const auto& saved : save(held)) EXPECT_TRUE(saved->ok());
  const std::vector<LeftReport> reports = left_reports(dir_);
  ASSERT_EQ(reports.size(), 3U);
  for (const LeftReport& left : reports) {
    EXPECT_EQ(left.launch, kLaunch);
    EXPECT_EQ(left.report.state.step, 10);
    const Result<ShardReport> sent = shard_report_from_json(
        events_[static_cast<std::size_t>(left.report.shard.rank)].only(), "the event");
    ASSERT_TRUE(sent.ok());
    EXPECT_EQ(left.report.shard.model.hash, sent->shard.model.hash);
  }
}

TEST_F(StateSaverTest, WritesNothingOnceALaterLaunchHasTheFolder) {
  HeldValues held = one_parameter();
  is_overtaken_ = true;
  for (const auto& saved : save(held)) {
    ASSERT_FALSE(saved->ok());
    EXPECT_EQ(saved->error().what, "overtaken");
  }
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(StateSaverTest, IsDueAgainOnlyAfterTheTimeBetweenSaves) {
  now_s_ = 75;
  EXPECT_TRUE(timers_[0].is_due());
  HeldValues held = one_parameter();
  save(held);
  EXPECT_FALSE(timers_[0].is_due());
  now_s_ = 75 + 60;
  EXPECT_TRUE(timers_[0].is_due());
}

TEST_F(StateSaverTest, FailsOnlyWhereADiskDoesNotTakeIt) {
  // A folder has the name of rank 1's file.
  std::filesystem::create_directories(partial() / "model-00002-of-00003.safetensors");
  HeldValues held = one_parameter();
  for (const auto& saved : save(held)) EXPECT_TRUE(saved->ok());
  EXPECT_EQ(events_[0].only().at("event"), "shard");
  EXPECT_EQ(events_[1].only().at("event"), "shard_failed");
  EXPECT_EQ(events_[1].only().at("step"), 10);
  EXPECT_EQ(events_[2].only().at("event"), "shard");
}

TEST_F(StateSaverTest, WritesNoParameterThatIsNotFinite) {
  HeldValues held = one_parameter();
  held.values(0)[2] = std::numeric_limits<float>::infinity();
  const Results results = save(held);
  ASSERT_FALSE(results[1]->ok());
  EXPECT_EQ(results[1]->error().code, ErrorCode::kDiverged);
  EXPECT_FALSE(std::filesystem::exists(partial() / "model-00002-of-00003.safetensors"));
}

TEST_F(StateSaverTest, IsLeftByAllRanksWhereTheDiskHasNoRoomForOne) {
  Results results(kRanks);
  group_.run([&](Rank self) {
    FrameLink link(group_.at(self), self, 1, 2);
    const std::uint64_t more_than_any_disk_has = std::uint64_t{1} << 45;
    results[self.index()] = agree_on_space({dir_, kLaunch, self, kRanks, 0, {}}, 10, link, soon(),
                                           self == Rank{1} ? more_than_any_disk_has : 1);
  });
  for (const auto& agreed : results) {
    ASSERT_FALSE(agreed->ok());
    EXPECT_EQ(agreed->error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(agreed->error().what, HasSubstr("step-000010"));
    EXPECT_THAT(agreed->error().cause, HasSubstr("3 ranks need"));
  }
}

// A single rank with residuals, and its step right after the save.
class SaveWithResiduals : public StateSaverTest {
 protected:
  // The residual read back from the file.
  std::vector<float> saved_residual() {
    HeldValues held = one_parameter();
    StageState state(held.chunks(), make_optimizer(plain_sgd()), "");
    ShardWriter writer([this] { return spare_bytes_; }, nullptr);
    CopyBeforeUpdate read_state(state, [&] { writer.copy_unwritten(); });
    RankGroup alone("inproc", 1);
    FrameLink link(alone.at(Rank{0}), Rank{0}, 1, 2);
    adds_residuals_ = [&] {
      held.gradients(0) = {5, 0, -7};
      return true;
    };
    StateSaver saver = saver_of(Rank{0}, 1, state, writer, link, events_[0]);
    EXPECT_TRUE(saver.save().ok());
    EXPECT_THAT(held.gradients(0), testing::Each(0)) << "the next step adds to them";
    held.gradients(0) = {1, 1, 1};
    read_state.update({0.5, {}}, {});
    read_state.clear_gradients();
    EXPECT_THAT(held.values(0), testing::ElementsAre(0.5F, -2.5F, 2.5F));
    saver.finish();
    EXPECT_EQ(events_[0].only().at("event"), "shard");
    const auto file = SafetensorsFile::open(partial() / "optimizer-00001-of-00001.safetensors");
    std::vector<float> residual(3);
    EXPECT_TRUE(file.ok() && file->read("residual.0/w1", {3}, residual).ok());
    const auto model = SafetensorsFile::open(partial() / "model-00001-of-00001.safetensors");
    std::vector<float> values(3);
    EXPECT_TRUE(model.ok() && model->read("w1", {3}, values).ok());
    EXPECT_THAT(values, testing::ElementsAre(1, -2, 3)) << "as they were at the save";
    return residual;
  }
};

TEST_F(SaveWithResiduals, KeepsThemFromTheNextStep) {
  EXPECT_THAT(saved_residual(), testing::ElementsAre(5, 0, -7));
}

TEST_F(SaveWithResiduals, WaitsForTheDiskWhereMemoryHasNoRoomForThem) {
  spare_bytes_ = 0;
  EXPECT_THAT(saved_residual(), testing::ElementsAre(5, 0, -7));
}

}  // namespace
}  // namespace motley
