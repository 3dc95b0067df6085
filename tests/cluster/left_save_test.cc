// Saves that the workers of a lost launcher completed: committed if whole, else never.
#include "cluster/run/left_save.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "checkpoint/checkpoint.h"
#include "cluster/run/save_header.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

constexpr const char* kLaunch = "000003-0123456789abcdef";
constexpr const char* kOther = "000002-0123456789abcdef";
constexpr int kRanks = 2;

class LeftSaveTest : public testing::Test {
 protected:
  LeftSaveTest() : log_("", LogLevel::kInfo, [this](std::string_view text) { said_ += text; }) {
    std::string name = (fs::temp_directory_path() / "motley-left-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    header_.launch = kLaunch;
    header_.common = {.seed = 5, .model_hash = "m", .model_family = "mlp", .optimizer = "sgd"};
    header_.config = {{"run", "r"}};
    header_.machines = {"desk", "box"};
    EXPECT_TRUE(write_save_header(dir_, header_).ok());
  }

  ~LeftSaveTest() override { fs::remove_all(dir_); }

  // One rank's part of a save.
  LeftReport save_shard(std::int64_t step,
                        int rank,
                        std::uint64_t samples = 8,
                        const std::string& launch = kLaunch) {
    const std::vector<float> values(4, 1.5F);
    const SaveLocation location{dir_, launch, step};
    const auto shard =
        write_shard(location, rank, kRanks, {{"w" + std::to_string(rank), {4}, values}}, {});
    EXPECT_TRUE(shard.ok());
    const ShardReport report{{.step = step, .samples = samples}, *shard};
    EXPECT_TRUE(write_shard_report(location, kRanks, report).ok());
    return {launch, report};
  }

  void save(std::int64_t step) {
    for (int rank = 0; rank < kRanks; ++rank) save_shard(step, rank);
  }

  void damage(std::int64_t step, const std::string& file) {
    std::fstream bytes(partial_folder({dir_, kLaunch, step}) / file,
                       std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(-1, std::ios::end);
    bytes.put('!');
    EXPECT_TRUE(bytes.good());
  }

  std::optional<std::int64_t> commit() { return commit_left_save(dir_, log_); }

  fs::path dir_;
  SaveHeader header_;
  std::string said_;
  Log log_;
};

TEST_F(LeftSaveTest, IsCommittedIfWhole) {
  save(7);
  EXPECT_EQ(left_save(dir_), 7);
  EXPECT_EQ(commit(), 7);
  EXPECT_TRUE(verify_checkpoint(checkpoint_folder(dir_, 7)).ok());
  const Result<Manifest> manifest = read_manifest(checkpoint_folder(dir_, 7));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->state.seed, 5);
  EXPECT_EQ(manifest->state.samples, 8U);
  EXPECT_EQ(manifest->config, header_.config);
  EXPECT_EQ(left_save(dir_), std::nullopt);
  EXPECT_EQ(commit(), std::nullopt) << "once";
}

TEST_F(LeftSaveTest, IsNotCommittedWithoutTheReportOfARank) {
  save_shard(7, 0);
  EXPECT_EQ(left_save(dir_), std::nullopt);
  EXPECT_EQ(commit(), std::nullopt);
  EXPECT_EQ(said_, "");
}

TEST_F(LeftSaveTest, IsNotCommittedIfTheRanksContradictEachOther) {
  save_shard(7, 0, 8);
  save_shard(7, 1, 9);
  EXPECT_EQ(commit(), std::nullopt);
}

TEST_F(LeftSaveTest, IsNotCommittedIfDamagedAndTheOneBeforeIs) {
  save(7);
  save(8);
  damage(8, "model-00002-of-00002.safetensors");
  EXPECT_EQ(commit(), 7);
  EXPECT_THAT(said_, HasSubstr("step 8, saved by the workers"));
  EXPECT_THAT(said_, HasSubstr("is damaged"));
}

TEST_F(LeftSaveTest, OfAnotherLaunchIsIgnored) {
  for (int rank = 0; rank < kRanks; ++rank) save_shard(7, rank, 8, kOther);
  EXPECT_EQ(commit(), std::nullopt);
}

TEST_F(LeftSaveTest, OlderThanACheckpointIsIgnored) {
  save(8);
  ASSERT_EQ(commit(), 8);
  save(7);
  EXPECT_EQ(commit(), std::nullopt);
}

TEST_F(LeftSaveTest, WithADamagedReportOrHeaderIsIgnored) {
  save(7);
  damage(7, "report-00001-of-00002.json");
  EXPECT_EQ(commit(), std::nullopt);
  save(7);
  std::ofstream(dir_ / "launch.json", std::ios::app) << "!";
  EXPECT_EQ(commit(), std::nullopt);
  ASSERT_TRUE(write_save_header(dir_, header_).ok());
  EXPECT_EQ(commit(), 7);
}

TEST_F(LeftSaveTest, IsCommittedWithPartsOnOtherMachines) {
  header_.elsewhere = {{1}, 32};
  ASSERT_TRUE(write_save_header(dir_, header_).ok());
  save_shard(7, 0);
  const fs::path here = partial_folder({dir_, kLaunch, 7});
  fs::rename(here, dir_ / "aside");
  const LeftReport box = save_shard(7, 1);
  fs::remove_all(here);
  fs::rename(dir_ / "aside", here);
  EXPECT_EQ(left_save(dir_), std::nullopt) << "not known without the other machine";
  EXPECT_EQ(commit_left_save(dir_, log_, {box}), 7);
  const Result<Manifest> manifest = read_manifest(checkpoint_folder(dir_, 7));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->files.front().machine, "desk");
}

}  // namespace
}  // namespace motley
