#include "record/tensorboard_log.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/files.h"
#include "tests/support/command_output.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::uint64_t kFileBytesMax = 1 << 20;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// The golden bytes were written by the package tensorboard 2.21 for the same events, with its
// RecordWriter and Event.
TEST(EventRecords, AreTheBytesThatTensorboardWrites) {
  EXPECT_EQ(hex(version_record(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e457665"
            "6e743a322a28646c");
  EXPECT_EQ(hex(start_record(2.5, 300)),
            "100000000000000095fbfe1809000000000000044010ac023a0208017d05b37d");
  EXPECT_EQ(hex(scalars_record(3.5, 7, {{"a/b", 0.25}, {"c", -1}})),
            "2300000000000000b09f7743090000000000000c4010072a160a0a0a03612f62"
            "150000803e0a080a016315000080bffabc2655");
}

class TensorboardLogTest : public testing::Test {
 protected:
  TensorboardLogTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("motley-tensorboard-") + info->name());
    std::filesystem::remove_all(folder_);
  }

  ~TensorboardLogTest() override { std::filesystem::remove_all(folder_); }

  static StepMetrics step(std::int64_t number) {
    return {
        .step = number, .outcome = {.loss = 2.5, .tokens = 100}, .step_s = 0.5, .wait_s = {0.25}};
  }

  void write(std::int64_t first, std::int64_t last, double wall_s) const {
    Result<TensorboardLog> log = TensorboardLog::open(folder_, first, {"stage 0 (box)"}, wall_s);
    ASSERT_TRUE(log.ok()) << describe(log.error());
    for (std::int64_t number = first; number <= last; ++number) {
      EXPECT_EQ(log->append(step(number), wall_s), std::nullopt);
    }
    EXPECT_EQ(log->finish(), std::nullopt);
  }

  [[nodiscard]] std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      paths.push_back(file.path());
    }
    std::ranges::sort(paths);
    return paths;
  }

  std::filesystem::path folder_;
};

TEST_F(TensorboardLogTest, BeginsEachLaunchWithAFileBehindTheOthersAndAStart) {
  write(1, 3, 1000);
  write(3, 4, 900);  // the clock was set back
  const auto paths = files();
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_EQ(paths[0].filename(), "events.out.tfevents.0000001000.motley");
  EXPECT_EQ(paths[1].filename(), "events.out.tfevents.0000001001.motley");
  EXPECT_THAT(read_file(paths[1], kFileBytesMax).value(),
              StartsWith(version_record(900) + start_record(900, 3)));
}

TEST_F(TensorboardLogTest, LosesNothingToADiskThatIsFullForAWhile) {
  Result<TensorboardLog> log = TensorboardLog::open(folder_, 1, {"a"}, 1000);
  ASSERT_TRUE(log.ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto first = log->append(step(1), 1);
  const auto second = log->append(step(2), 2);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(*first, HasSubstr("buffered in memory"));
  EXPECT_EQ(second, std::nullopt);  // reported only once
  EXPECT_EQ(log->finish(), std::nullopt);
  const auto scalars = [](std::int64_t number) { return scalars_of(step(number), {"a"}); };
  EXPECT_EQ(read_file(files().front(), kFileBytesMax).value(),
            version_record(1000) + start_record(1000, 1) + scalars_record(1, 1, scalars(1)) +
                scalars_record(2, 2, scalars(2)));
}

TEST_F(TensorboardLogTest, SaysWhereItCannotBeMade) {
  const auto log = TensorboardLog::open("/proc/nothing", 1, {"a"}, 1000);
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().code, ErrorCode::kCorrupt);
}

TEST_F(TensorboardLogTest, LeavesOutWhatAStepHasNot) {
  StepMetrics metrics = step(1);
  metrics.is_computed = false;
  std::vector<std::string> tags;
  for (const Scalar& scalar : scalars_of(metrics, {"stage 0 (box)"})) tags.push_back(scalar.tag);
  EXPECT_THAT(tags, Not(testing::Contains("train/loss")));
  EXPECT_THAT(tags, Not(testing::Contains("eval/loss")));
  EXPECT_THAT(tags, testing::Contains("waiting_s/stage 0 (box)"));
  EXPECT_THAT(tags, Not(testing::Contains("memory_bytes/stage 0 (box)")));
}

TEST_F(TensorboardLogTest, TellsTheMemoryOfStagesThatIsKnown) {
  StepMetrics metrics = step(1);
  metrics.wait_s = {0.5, 0.25};
  metrics.ranks.resize(2);
  metrics.ranks[1].memory_bytes = 1 << 20;
  std::vector<std::string> tags;
  for (const Scalar& scalar : scalars_of(metrics, {"a", "b"})) {
    if (scalar.tag.starts_with("memory")) tags.push_back(scalar.tag);
  }
  EXPECT_THAT(tags, testing::ElementsAre("memory_bytes/b"));
}

// With Google's protobuf and TensorFlow's schema.
TEST_F(TensorboardLogTest, IsReadByAnotherReader) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "needs python3";
  write(1, 2, 1000);
  write(2, 2, 1001);
  std::string command = "/usr/bin/python3 " MOTLEY_SOURCE_DIR "/tests/record/read_tensorboard.py";
  for (const auto& path : files()) command += " '" + path.string() + "'";
  const auto [status, out] = output_of(command + " 2>&1");
  constexpr int kSkipped = 77;
  if (status == kSkipped) GTEST_SKIP() << out;
  EXPECT_EQ(status, 0) << out;
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < out.size(); at = out.find('\n', at) + 1) {
    lines.push_back(out.substr(at, out.find('\n', at) - at));
  }
  const auto is_step = [](int number) {
    return AllOf(StartsWith(fmt::format("step {} ", number)), HasSubstr("train/loss=2.5"),
                 HasSubstr("speed/tokens_per_s=200"), HasSubstr("waiting_s/stage 0 (box)=0.25"));
  };
  EXPECT_THAT(lines, ElementsAre("version brain.Event:2", "start at 1", is_step(1), is_step(2),
                                 "version brain.Event:2", "start at 2", is_step(2)));
}

}  // namespace
}  // namespace motley
