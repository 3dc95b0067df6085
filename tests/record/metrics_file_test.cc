#include "record/metrics_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/system/files.h"

namespace motley {
namespace {

class MetricsFileTest : public testing::Test {
 protected:
  MetricsFileTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("motley-metrics-") + info->name() + ".jsonl");
    std::filesystem::remove(path_);
  }

  ~MetricsFileTest() override { std::filesystem::remove(path_); }

  void write(std::int64_t resumed_step, std::int64_t first, std::int64_t last) {
    Result<MetricsFile> file = MetricsFile::open(path_, resumed_step);
    ASSERT_TRUE(file.ok()) << describe(file.error());
    for (std::int64_t step = first; step <= last; ++step) {
      ASSERT_TRUE(file->append({{"step", step}, {"run", resumed_step}}).ok());
    }
  }

  void damage(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  // "1/0 2/0 3/2": for each line its step and the step from which its run resumed.
  [[nodiscard]] std::string lines() const {
    std::string all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      const Json json = *parse_json(line, "test");
      all += std::to_string(json["step"].get<int>()) + "/" +
             std::to_string(json["run"].get<int>()) + " ";
    }
    return all;
  }

  std::filesystem::path path_;
};

TEST_F(MetricsFileTest, HasEachStepOnceAfterAResume) {
  write(0, 1, 5);
  write(3, 4, 6);
  EXPECT_EQ(lines(), "1/0 2/0 3/0 4/3 5/3 6/3 ");
}

TEST_F(MetricsFileTest, StartsAfreshForAFreshRun) {
  write(0, 1, 5);
  write(0, 1, 2);
  EXPECT_EQ(lines(), "1/0 2/0 ");
}

TEST_F(MetricsFileTest, CutsOffALineThatWasNotWrittenWhole) {
  write(0, 1, 2);
  damage(R"({"step":3,"ru)");
  write(3, 4, 4);
  EXPECT_EQ(lines(), "1/0 2/0 4/3 ");
}

TEST_F(MetricsFileTest, CutsOffAWholeLineWithoutItsEnd) {
  write(0, 1, 1);
  damage(R"({"step":2,"run":0})");
  write(2, 3, 3);
  EXPECT_EQ(lines(), "1/0 3/2 ");
}

TEST_F(MetricsFileTest, KeepsWhatStandsBehindALineThatCannotBeRead) {
  write(0, 1, 2);
  damage("step 3/9  loss 5.5\n");
  write(2, 3, 5);
  write(4, 5, 5);
  std::string text = read_file(path_, 1 << 20).value();
  EXPECT_NE(text.find("\"step\":4"), std::string::npos) << text;
  EXPECT_NE(text.find("step 3/9"), std::string::npos) << text;
  EXPECT_EQ(text.find("\"run\":2,\"step\":5"), std::string::npos) << text;
}

TEST_F(MetricsFileTest, KeepsEverythingWhenResumedAtItsEnd) {
  write(0, 1, 3);
  write(3, 4, 3);
  EXPECT_EQ(lines(), "1/0 2/0 3/0 ");
}

TEST_F(MetricsFileTest, SaysWhereItCannotBeMade) {
  const Result<MetricsFile> file = MetricsFile::open("/nonexistent/metrics.jsonl", 0);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
}

TEST_F(MetricsFileTest, SaysWhenALineCannotBeWrittenWhole) {
  Result<MetricsFile> file = MetricsFile::open(path_, 0);
  ASSERT_TRUE(file.ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit ten_bytes{.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &ten_bytes), 0);
  const Result<void> appended = file->append({{"step", 1}, {"run", 0}});
  EXPECT_FALSE(file->finish().ok());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(appended.ok());
  EXPECT_EQ(appended.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(lines(), "");
  // Once there is space, no line is missing or truncated.
  ASSERT_TRUE(file->append({{"step", 2}, {"run", 0}}).ok());
  EXPECT_TRUE(file->finish().ok());
  EXPECT_EQ(lines(), "1/0 2/0 ");
}

TEST_F(MetricsFileTest, TellsTheLastStepAlsoOfALongFileThatIsBeingWritten) {
  EXPECT_EQ(last_metrics_step(path_), 0);
  write(0, 1, 3);
  damage("{\"step\": 4, \"lo");
  EXPECT_EQ(last_metrics_step(path_), 3);
  write(0, 1, 10'000);
  EXPECT_EQ(last_metrics_step(path_), 10'000);
}

TEST_F(MetricsFileTest, TellsTheLastStepOfLinesThatAreLong) {
  Result<MetricsFile> file = MetricsFile::open(path_, 0);
  ASSERT_TRUE(file.ok());
  const std::string rest(100'000, 'x');
  for (int step = 1; step <= 20; ++step) {
    ASSERT_TRUE(file->append({{"step", step}, {"run", 0}, {"rest", rest}}).ok());
  }
  EXPECT_EQ(last_metrics_step(path_), 20);
  write(7, 8, 8);
  EXPECT_EQ(last_metrics_step(path_), 8);
}

TEST_F(MetricsFileTest, NeverCutsOffWhatALinkLeadsTo) {
  const std::filesystem::path notes = path_.string() + ".notes";
  std::ofstream(notes) << "mine";
  std::filesystem::create_symlink(notes, path_);
  EXPECT_FALSE(MetricsFile::open(path_, 0).ok());
  EXPECT_EQ(std::filesystem::file_size(notes), 4U);
  std::filesystem::remove(notes);
}

TEST_F(MetricsFileTest, DoesNotWaitAtAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(MetricsFile::open(path_, 0).ok());
  EXPECT_EQ(last_metrics_step(path_), 0);
}

}  // namespace
}  // namespace motley
