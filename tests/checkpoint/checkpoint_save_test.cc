// Conditions of a save: launches that do not mix, non-finite parameters, full disks, and the data
// and plan in the manifest.
#include <fstream>
#include <limits>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save/space.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kLaunch;
using testing::TestRun;
using testing::views;

// A folder with a checkpoint's name that is no checkpoint may contain valuable files, so it is
// moved, not deleted.
TEST(CheckpointCommitConflicts, PutsAsideWhatHasItsNameAndIsNoCheckpoint) {
  const TestRun run;
  const auto found = checkpoint_folder(run.dir(), 5);
  std::filesystem::create_directories(found);
  std::ofstream(found / "notes.txt") << "precious";
  EXPECT_FALSE(require_all_count(run.dir()).ok());
  ASSERT_OK(run.save(5));
  EXPECT_THAT(run.steps(), ElementsAre(5));
  EXPECT_FALSE(std::filesystem::exists(found / "notes.txt"));
  const auto aside = found.parent_path() / (std::string("not-a-checkpoint-") + kLaunch);
  EXPECT_TRUE(std::filesystem::exists(aside / found.filename() / "notes.txt"));
}

// Two launches of one run never write into the same folder, and a commit takes no file of the
// other launch.
TEST(CheckpointCommitConflicts, TakesNothingOfAnotherLaunch) {
  const TestRun run;
  ASSERT_OK(run.save(5, 1, 1));
  const std::string other = "000004-fedcba9876543210";
  const auto tensors = TestRun::parameters(2);
  std::vector<Shard> shards;
  for (const int rank : {0, 1}) {
    const SaveLocation location{run.dir(), rank == 0 ? other : kLaunch, 10};
    const auto shard = write_shard(location, rank, 2, rank == 0 ? views(tensors) : views({}), {});
    ASSERT_OK(shard);
    shards.push_back(*shard);
  }
  EXPECT_CORRUPT(commit_checkpoint(run.dir(), other, TestRun::state(10), shards, Json(), Json()),
                 "model-00002-of-00002");
  EXPECT_THAT(run.steps(), ElementsAre(5));
}

TEST(CheckpointShard, HoldsNoParameterThatIsNotFinite) {
  const TestRun run;
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    auto tensors = TestRun::parameters(1);
    tensors[2].values[1] = bad;
    const auto shard = write_shard({run.dir(), kLaunch, 5}, 0, 1, views(tensors), {});
    ASSERT_FALSE(shard.ok());
    EXPECT_EQ(shard.error().code, ErrorCode::kDiverged);
    EXPECT_THAT(shard.error().cause, HasSubstr("1 of the 2 values of h.0.ln_1.weight"));
    EXPECT_FALSE(std::filesystem::exists(partial_folder({run.dir(), kLaunch, 5})));
  }
  auto tensors = TestRun::parameters(std::numeric_limits<float>::denorm_min());
  tensors[0].values[0] = std::numeric_limits<float>::max() * -1;
  EXPECT_OK(write_shard({run.dir(), kLaunch, 5}, 0, 1, views(tensors), {}));
}

TEST(CheckpointSpace, CountsWhatAllRanksNeedTogether) {
  const testing::TempFolder folder;
  const auto space = [&](const std::vector<SpaceReport>& reports) {
    return require_space(folder.path(), reports, std::vector<std::string>{"desk", "box", "lap"});
  };
  EXPECT_OK(space({{40, 100}, {60, 100}}));
  EXPECT_CORRUPT(space({{40, 100}, {61, 100}}), "2 ranks need 101 bytes, 100 bytes are free");
  EXPECT_CORRUPT(space({{40, 100}, {61, 100}}), ", 1 bytes are missing");
  // Machine-local folders are on separate disks.
  EXPECT_OK(space({{100, 100, 1}, {100, 100, 2}}));
  EXPECT_CORRUPT(space({{40, 100, 1}, {70, 100, 2}, {31, 100, 2}}), "its 2 ranks need 101 bytes");
  EXPECT_CORRUPT(space({{40, 100, 1}, {70, 100, 2}, {31, 100, 2}}),
                 "the disk of box has too little space");
  EXPECT_CORRUPT(space({{40, 100, 1}, {61, 100, 1}}), "the disk of desk has too little space");
  // Ranks report different free space for one disk, or none.
  EXPECT_CORRUPT(space({{40, 200}, {61, 70}}), "31 bytes are missing");
  EXPECT_OK(space({{40, kUnknownSpace}, {60, 100}}));
  EXPECT_OK(space({{kUnknownSpace, kUnknownSpace}, {1, kUnknownSpace}}));
}

TEST(CheckpointSpace, IsThatOfTheDisk) {
  const testing::TempFolder folder;
  EXPECT_GT(free_bytes(folder.path()), 0U);
  EXPECT_LT(free_bytes(folder.path()), kUnknownSpace);
  EXPECT_EQ(free_bytes(folder.path() / "absent"), kUnknownSpace);
}

TEST(CheckpointManifest, KeepsWhatDataAndPlanWere) {
  const TestRun run;
  const auto shards = run.write(5, 1, 1);
  ASSERT_OK(shards);
  CheckpointState state = TestRun::state(5);
  state.data = {"text", 1234, std::string(32, 'a'), 0.1};
  state.plan = {2, {"none", "fp16"}, "int8", {1, 2, 1}};
  const auto folder = commit_checkpoint(run.dir(), kLaunch, state, *shards, Json(), Json());
  ASSERT_OK(folder);
  const auto manifest = read_manifest(*folder);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->state.data, state.data);
  EXPECT_EQ(manifest->state.plan, state.plan);
}

// Checkpoints of earlier versions have neither.
TEST(CheckpointManifest, DoesWithoutDataAndPlan) {
  const TestRun run;
  const auto folder = run.save(5);
  ASSERT_OK(folder);
  const auto manifest = read_manifest(*folder);
  ASSERT_OK(manifest);
  EXPECT_FALSE(manifest->state.data.has_value());
  EXPECT_FALSE(manifest->state.plan.has_value());
}

TEST(LaunchName, NamesALaunchExactly) {
  const auto launch = parse_launch(kLaunch);
  ASSERT_OK(launch);
  EXPECT_EQ(launch->number, 3U);
  EXPECT_EQ(launch_text(*launch), kLaunch);
  for (const char* text :
       {"", "3-0123456789abcdef", "000003", "000003-0123", "000000-0123456789abcdef",
        "000003-0123456789ABCDEF", "-00003-0123456789abcdef", "4294967296-0123456789abcdef"}) {
    EXPECT_FALSE(parse_launch(text).ok()) << text;
  }
}

TEST(LaunchName, DistinguishesTheLaunchersFolderFromACopy) {
  const testing::TempFolder folder;
  const auto absent = require_launch(folder.path(), kLaunch);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kConfig);
  EXPECT_THAT(absent.error().what, HasSubstr("does not exist"));
  ASSERT_OK(make_folders(launches_folder(folder.path())));
  const auto write = [&](const std::string& launch) {
    return write_file_atomic(launch_file(folder.path(), 3), Json{{"launch", launch}}.dump());
  };
  ASSERT_OK(write("000003-fedcba9876543210"));
  const auto copy = require_launch(folder.path(), kLaunch);
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.error().code, ErrorCode::kConfig);
  EXPECT_THAT(copy.error().what, HasSubstr("is not the launcher's"));
  ASSERT_OK(write(kLaunch));
  EXPECT_OK(require_launch(folder.path(), kLaunch));
}

}  // namespace
}  // namespace motley
