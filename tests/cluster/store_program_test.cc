// The program motley-store, with the launcher's queries about a machine's folder.
#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "checkpoint/lock/run_lock.h"
#include "checkpoint/replication/shard_set.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/prune.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using motley::testing::kLaunch;
using motley::testing::names_in;
using motley::testing::TempFolder;
using motley::testing::TestRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreProgram : public ::testing::Test {
 protected:
  StoreProgram() {
    cluster_.machines.push_back({.name = "desk"});
    cluster_.machines.push_back({.name = "box", .runs_dir = runs_.path().string()});
  }

  // motley-store is next to motley-stage; the latter is not run.
  [[nodiscard]] InventoryRequest request(IfAbsent if_absent = IfAbsent::kLeave) const {
    return {.cluster = cluster_,
            .machines = names_,
            .run_dir = run_.dir(),
            .launch = kLaunch,
            .program = fs::path(MOTLEY_PROGRAMS) / "motley-stage",
            .if_absent = if_absent};
  }

  [[nodiscard]] Result<StoreInventory> look(IfAbsent if_absent,
                                            const StoreQuery& store_query = {}) const {
    return inventory_stores(request(if_absent), store_query, Log("test", LogLevel::kError));
  }

  [[nodiscard]] fs::path own() const { return runs_.path() / run_.dir().filename(); }

  TestRun run_;
  TempFolder runs_;
  Cluster cluster_;
  const std::set<std::string> names_ = {"desk", "box"};
};

TEST_F(StoreProgram, MakesAFolderOnlyWhereItIsAskedTo) {
  const Result<StoreInventory> looked = look(IfAbsent::kLeave);
  ASSERT_TRUE(looked.ok()) << describe(looked.error());
  EXPECT_EQ(looked->dirs.at("box"), own());
  EXPECT_THAT(names_in(runs_.path()), IsEmpty());
  const Result<StoreInventory> made = look(IfAbsent::kMake);
  ASSERT_TRUE(made.ok()) << describe(made.error());
  EXPECT_THAT(names_in(own()), ElementsAre("store.json"));
  EXPECT_EQ(made->of("box"), made->at("box").contents.location.id);
  EXPECT_EQ(made->of("desk"), "");
}

TEST_F(StoreProgram, TellsWhatIsWhole) {
  ASSERT_TRUE(run_.save(10).ok());
  ASSERT_TRUE(look(IfAbsent::kMake).ok());
  const fs::path folder = checkpoint_folder(run_.dir(), 10);
  const CheckpointMetadata step_metadata = *read_metadata(folder);
  ASSERT_TRUE(adopt_shards(own(), kLaunch, step_metadata, nullptr).ok());
  const std::string file = "model-00002-of-00002.safetensors";
  fs::copy_file(folder / file, checkpoint_folder(own(), 10) / file);
  const Result<StoreInventory> looked =
      look(IfAbsent::kLeave, {.wanted = wanted_step(step_metadata)});
  ASSERT_TRUE(looked.ok()) << describe(looked.error());
  EXPECT_THAT(looked->at("box").contents.intact, ElementsAre(file));
  EXPECT_EQ(looked->at("desk").contents.intact.size(), 4U);
}

TEST_F(StoreProgram, LeavesWhatTheLauncherHas) {
  ASSERT_TRUE(look(IfAbsent::kMake).ok());
  for (const std::int64_t step : {10, 20, 30}) {
    ASSERT_TRUE(run_.save(step).ok());
    const CheckpointMetadata step_metadata = *read_metadata(checkpoint_folder(run_.dir(), step));
    ASSERT_TRUE(adopt_shards(own(), kLaunch, step_metadata, nullptr).ok());
  }
  const Result<StoreInventory> stores = look(IfAbsent::kLeave);
  ASSERT_TRUE(stores.ok()) << describe(stores.error());
  const Log log("test", LogLevel::kError);
  const auto pruned = prune_stores({20, 30}, request(), *stores, log);
  ASSERT_TRUE(pruned.ok()) << describe(pruned.error());
  EXPECT_THAT(names_in(own() / "checkpoints"), ElementsAre("step-000020", "step-000030"));
  EXPECT_EQ(run_.steps().size(), 3U) << "the launcher looks after its own";
  // After a later launch has used the folder, this one removes nothing more.
  const Result<RunLock> later = RunLock::acquire(own(), log);
  ASSERT_TRUE(later.ok());
  const auto refused = prune_stores({30}, request(), *stores, log);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kPeer);
  EXPECT_THAT(names_in(own() / "checkpoints"), ElementsAre("step-000020", "step-000030"));
}

TEST_F(StoreProgram, ThatIsMissingIsNamed) {
  cluster_.machines[1].motley_dir = "/nonexistent";
  const Result<StoreInventory> looked = look(IfAbsent::kLeave);
  ASSERT_FALSE(looked.ok());
  EXPECT_THAT(looked.error().cause, HasSubstr("/nonexistent/motley-store"));
  EXPECT_THAT(looked.error().remedy, HasSubstr("motley_dir"));
}

}  // namespace
}  // namespace motley
