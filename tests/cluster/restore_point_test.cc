// The checkpoint that a run resumes from, and the number of queries to the machines until it is
// known.
#include "cluster/replication/restore_point.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/replication/shard_set.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using motley::testing::kLaunch;
using motley::testing::TempFolder;
using motley::testing::TestRun;
using motley::testing::write_bytes;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLater = "000004-0123456789abcdef";

// The launcher's machine, desk, and box, each with its own disk.
class RestorePointTest : public ::testing::Test {
 protected:
  // The answers of a worker on box and of the launcher itself.
  QueryStores ask() {
    return [this](const StoreQuery& store_query) -> Result<StoreInventory> {
      ++questions_;
      StoreInventory stores;
      for (const bool is_box : {false, true}) {
        MachineStore store{.machines = {is_box ? "box" : "desk"}};
        const StoreLocation location{is_box ? box_.path() : run_.dir(), !is_box, is_box ? "b" : ""};
        MOTLEY_ASSIGN(store.contents, take_inventory(location, store_query, nullptr));
        stores.by_id[location.id] = std::move(store);
      }
      return stores;
    };
  }

  // Leaves in the launcher's folder only the files that are the same on all machines.
  void move_to_box(std::int64_t step) const {
    const std::filesystem::path folder = checkpoint_folder(run_.dir(), step);
    const CheckpointMetadata step_metadata = *read_metadata(folder);
    EXPECT_TRUE(adopt_shards(box_.path(), kLaunch, step_metadata, nullptr).ok());
    for (const WrittenFile& file : tensor_files(step_metadata.manifest)) {
      std::filesystem::rename(folder / file.name, checkpoint_folder(box_.path(), step) / file.name);
    }
  }

  Result<std::optional<RestorePoint>> find() {
    return find_restore_point(run_.dir(), kLater, ask(), log_);
  }

  // The launcher's folder no longer contains the step, or never did.
  void lose_here(std::int64_t step) const {
    std::filesystem::remove_all(checkpoint_folder(run_.dir(), step));
  }

  static void damage_manifest(const std::filesystem::path& run_dir, std::int64_t step) {
    write_bytes(checkpoint_folder(run_dir, step) / "manifest.json", "{");
  }

  TestRun run_;
  TempFolder box_;
  int questions_ = 0;
  std::string warnings_;
  Log log_{"test", LogLevel::kWarn, [this](std::string_view line) { warnings_ += line; }};
};

TEST_F(RestorePointTest, OneQuestionIsEnoughWhereNobodyKnowsMore) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  const auto found = find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->step_metadata.step(), 20);
  EXPECT_EQ(questions_, 1);
}

TEST_F(RestorePointTest, WhatAnotherFolderHasNewerIsAskedForAnew) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  std::filesystem::remove_all(checkpoint_folder(run_.dir(), 20));
  const auto found = find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->step_metadata.step(), 20);
  for (const auto& [file, locations] : (*found)->locations) {
    EXPECT_EQ(locations, std::vector<StoreId>{"b"}) << file;
  }
}

TEST_F(RestorePointTest, TheOneBeforeStandsForOneOfWhichSomethingIsMissing) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  std::filesystem::remove(checkpoint_folder(box_.path(), 20) / "model-00001-of-00002.safetensors");
  const auto found = find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->step_metadata.step(), 10);
  EXPECT_EQ(questions_, 2);
}

TEST_F(RestorePointTest, DamagedTextsComeFromAnotherFolder) {
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  damage_manifest(run_.dir(), 20);
  const auto found = find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->step_metadata.step(), 20);
}

TEST_F(RestorePointTest, TheOneBeforeIsNotTakenWithoutAWordWhereNobodyCanTellTheNewest) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  lose_here(20);
  damage_manifest(box_.path(), 20);
  const auto found = find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->step_metadata.step(), 10);
  EXPECT_THAT(warnings_,
              AllOf(HasSubstr("the checkpoint of step 20 cannot be used: its manifest is damaged"),
                    HasSubstr(box_.path().string() + " on box (")));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_folder(run_.dir(), 20)));
}

TEST_F(RestorePointTest, NamesAllFoldersWhereWhatBelongsToTheOnlyOneIsDamaged) {
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  damage_manifest(run_.dir(), 20);
  damage_manifest(box_.path(), 20);
  const auto found = find();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().cause, AllOf(HasSubstr("step 20 cannot be used"),
                                         HasSubstr("in " + run_.dir().string() + " ("),
                                         HasSubstr(" and in " + box_.path().string() + " on box")));
}

TEST_F(RestorePointTest, ALostFolderDoesNotMakeDamagedCheckpointsNone) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(run_.save(20).ok());
  for (const std::int64_t step : {10, 20}) {
    move_to_box(step);
    lose_here(step);
    damage_manifest(box_.path(), step);
  }
  const auto all = find();
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(all.error().cause,
              ContainsRegex("step 20 cannot .* on box .*step 10 cannot .* on box"));
  const auto one = find_restore_point(run_.dir(), kLater, ask(), log_, 10);
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(one.error().cause, AllOf(HasSubstr("step 10"), Not(HasSubstr("step 20"))));
}

TEST_F(RestorePointTest, AManifestOfAnotherStepTellsNothing) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(run_.save(20).ok());
  move_to_box(20);
  lose_here(20);
  const std::filesystem::path root = checkpoint_folder(box_.path(), 20).parent_path();
  std::filesystem::rename(root / "step-000020", root / "step-000030");
  const auto found = find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->step_metadata.step(), 10);
  EXPECT_THAT(warnings_, HasSubstr("(it is of step 20)"));
}

TEST_F(RestorePointTest, NothingIsFoundWhereNobodyHasSaved) {
  const auto found = find();
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST_F(RestorePointTest, SaysWhatIsMissingWhereNoneCanBeUsed) {
  ASSERT_TRUE(run_.save(20).ok());
  std::filesystem::remove(checkpoint_folder(run_.dir(), 20) / "model-00001-of-00002.safetensors");
  const auto found = find();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().cause, HasSubstr("model-00001-of-00002.safetensors is on no machine"));
}

}  // namespace
}  // namespace motley
