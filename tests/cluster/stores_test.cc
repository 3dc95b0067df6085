// Locations of the parts of a checkpoint, and the moves before a training resumes.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cluster/replication/copy_plan.h"
#include "cluster/replication/plan_transfers.h"
#include "cluster/replication/repair.h"
#include "cluster/run/rank_folders.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

MachineStore store_of(const std::string& id, const std::vector<std::string>& machines) {
  MachineStore store{.contents = {.location = {"/runs/x", id.empty(), id}, .free_bytes = 1000},
                     .machines = machines};
  return store;
}

// desk is the launcher's machine; the others have machine-local folders.
StoreInventory three_stores() {
  StoreInventory stores;
  stores.by_id[""] = store_of("", {"desk"});
  stores.by_id["b"] = store_of("b", {"box"});
  stores.by_id["l"] = store_of("l", {"lap"});
  return stores;
}

Cluster cluster_of_three() {
  Cluster cluster;
  for (const char* name : {"desk", "box", "lap"}) cluster.machines.push_back({.name = name});
  cluster.links.push_back({"lap", "box", {1e9, 1e-4}});
  return cluster;
}

// Rank r holds layer r of the model, the last rank the remaining layers.
Plan plan_on(const std::vector<std::string>& machines) {
  Plan plan;
  for (std::size_t r = 0; r < machines.size(); ++r) {
    plan.ranks.push_back({.machine = machines[r], .device = "cpu"});
    plan.chunks.push_back({.first_layer = static_cast<int>(r),
                           .layer_count = 1,
                           .replicas = {{Rank{static_cast<std::int32_t>(r)}, 1}}});
  }
  return plan;
}

ModelSpec model_of(int layers) {
  ModelSpec model;
  for (int i = 0; i < layers; ++i) {
    LayerSpec layer{.name = "layer" + std::to_string(i)};
    layer.parameters.push_back({.name = "w" + std::to_string(i), .shape = {2}});
    model.layers.push_back(std::move(layer));
  }
  return model;
}

// A checkpoint of three ranks with one parameter and one moment each.
RestorePoint point_of(const std::map<int, std::vector<StoreId>>& locations) {
  RestorePoint point;
  for (const auto& [rank, stores] : locations) {
    const std::string number = std::to_string(rank);
    const std::string model = "model-0000" + std::to_string(rank + 1) + "-of-00003.safetensors";
    const std::string optimizer =
        "optimizer-0000" + std::to_string(rank + 1) + "-of-00003.safetensors";
    point.step_metadata.manifest.files.push_back({model, 100, "", {{"w" + number, ""}}});
    point.step_metadata.manifest.files.push_back(
        {optimizer, 200, "", {{"exp_avg/w" + number, ""}}});
    point.locations[model] = stores;
    point.locations[optimizer] = stores;
  }
  return point;
}

std::vector<StoreTransfers> moves_for(const RestorePoint& point, const Plan& plan) {
  const StoreInventory stores = three_stores();
  return plan_transfers(point, parameters_by_store(plan, model_of(3), stores), stores,
                        cluster_of_three());
}

const StoreTransfers& of(const std::vector<StoreTransfers>& transfers, const StoreId& store) {
  return *std::ranges::find(transfers, store, &StoreTransfers::store);
}

TEST(PlanMoves, NothingGoesWhereEachMachineHasWhatItNeeds) {
  const auto transfers =
      moves_for(point_of({{0, {""}}, {1, {"b"}}, {2, {"l"}}}), plan_on({"desk", "box", "lap"}));
  ASSERT_EQ(transfers.size(), 3U);
  for (const StoreTransfers& each : transfers) {
    EXPECT_TRUE(each.order.makes_restored_view);
    EXPECT_EQ(each.order.linked.size(), 2U);
    EXPECT_THAT(each.order.incoming, IsEmpty());
    EXPECT_THAT(each.order.outgoing, IsEmpty());
  }
}

TEST(PlanMoves, AMachineWithoutRanksGivesWhatOthersNeed) {
  const auto transfers =
      moves_for(point_of({{0, {""}}, {1, {"b"}}, {2, {"l"}}}), plan_on({"desk", "box", "box"}));
  ASSERT_EQ(transfers.size(), 3U);
  const TransferOrder& box = of(transfers, "b").order;
  const TransferOrder& lap = of(transfers, "l").order;
  EXPECT_EQ(box.linked.size(), 2U);
  ASSERT_EQ(box.incoming.size(), 2U);
  EXPECT_EQ(box.incoming[0].peer, lap.self);
  EXPECT_FALSE(lap.makes_restored_view);
  ASSERT_EQ(lap.outgoing.size(), 2U);
  EXPECT_EQ(lap.outgoing[1].file, box.incoming[1].file);
  EXPECT_EQ(lap.outgoing[1].stream, box.incoming[1].stream);
  EXPECT_NE(lap.outgoing[0].stream, lap.outgoing[1].stream);
}

TEST(PlanMoves, OfSeveralHoldersTheOneWithTheFastestLinkGives) {
  const auto transfers =
      moves_for(point_of({{0, {"b"}}, {1, {"b"}}, {2, {"", "l"}}}), plan_on({"box", "box", "box"}));
  EXPECT_EQ(of(transfers, "l").order.outgoing.size(), 2U);
  EXPECT_EQ(transfers.size(), 2U) << "desk has nothing to do";
}

TEST(PlanMoves, TheWholeCheckpointInTheLaunchersFolderIsReadAsItLies) {
  const auto transfers = moves_for(point_of({{0, {""}}, {1, {"", "b"}}, {2, {"", "l"}}}),
                                   plan_on({"desk", "desk", "desk"}));
  EXPECT_THAT(transfers, IsEmpty());
}

TEST(FileLocations, SayWhereEachFileIsWholeAndWhereItIsDamaged) {
  StoreInventory stores = three_stores();
  stores.by_id["b"].contents.intact = {"model", "optimizer"};
  stores.by_id["l"].contents.intact = {"model"};
  stores.by_id[""].contents.damaged = {"optimizer"};
  const auto all = file_locations({{"model"}, {"optimizer"}, {"other"}}, stores);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_THAT(all[0].intact, ElementsAre("b", "l"));
  EXPECT_THAT(all[1].intact, ElementsAre("b"));
  EXPECT_THAT(all[1].damaged, ElementsAre(""));
  EXPECT_THAT(all[2].intact, IsEmpty());
}

// An intact copy elsewhere is not enough: the damaged file would be found by queries of that
// folder.
TEST(MissingCopies, OfADamagedFileGoWhereItIsDamaged) {
  const RestorePoint point = point_of({{0, {"", "l"}}});
  const std::string model = "model-00001-of-00003.safetensors";
  for (const char* damaged : {"b", "l"}) {
    StoreInventory stores = three_stores();
    stores.by_id[damaged].contents.damaged = {model};
    RestorePoint found = point;
    std::erase(found.locations[model], damaged);
    EXPECT_THAT(missing_copies(found, stores, cluster_of_three(), 1),
                ElementsAre(Pair(damaged, ElementsAre(model))));
  }
  EXPECT_THAT(missing_copies(point, three_stores(), cluster_of_three(), 1), IsEmpty());
}

TEST(PlanCopies, GoAroundARing) {
  const auto copies = plan_copies({"", "b", "l"}, three_stores(), cluster_of_three(), 1);
  std::map<StoreId, int> given;
  for (const auto& [from, to] : copies) {
    ASSERT_EQ(to.size(), 1U);
    EXPECT_NE(to[0], from);
    ++given[to[0]];
  }
  EXPECT_THAT(given, UnorderedElementsAre(Pair("", 1), Pair("b", 1), Pair("l", 1)));
  EXPECT_THAT(plan_copies({"", "b"}, three_stores(), cluster_of_three(), 5),
              UnorderedElementsAre(Pair("", ElementsAre("b")), Pair("b", ElementsAre(""))));
  EXPECT_THAT(plan_copies({"b"}, three_stores(), cluster_of_three(), 1),
              ElementsAre(Pair("b", IsEmpty())));
}

TEST(RankFolders, EachFolderHasOneReplicatorAndItsFilesAreKnown) {
  const Plan plan = plan_on({"box", "desk", "box"});
  const auto replicators = plan_replicators(plan, three_stores(), cluster_of_three(), 1);
  ASSERT_EQ(replicators.size(), 2U);
  EXPECT_THAT(replicators.at(0).copies_to, ElementsAre(Rank{1}));
  EXPECT_THAT(replicators.at(1).copies_from, ElementsAre(Rank{0}));
  EXPECT_THAT(ranks_elsewhere(plan, three_stores()), ElementsAre(0, 2));
  EXPECT_EQ(files_by_replicator(plan, three_stores()).at(0).size(), 4U);
  EXPECT_THAT(plan_replicators(plan_on({"desk", "desk"}), three_stores(), cluster_of_three(), 1),
              IsEmpty());
}

TEST(OwnDir, IsTheMachinesThenBelowItsHomeThenTheSame) {
  Machine machine{.name = "box"};
  EXPECT_EQ(own_dir_of(machine, "/home/ann/runs/x", "/home/ann"), "~/runs/x");
  EXPECT_EQ(own_dir_of(machine, "/home/annette/runs/x", "/home/ann"), "/home/annette/runs/x");
  EXPECT_EQ(own_dir_of(machine, "/data/runs/x", "/home/ann"), "/data/runs/x");
  EXPECT_EQ(own_dir_of(machine, "/data/runs/x", ""), "/data/runs/x");
  machine.runs_dir = "/big";
  EXPECT_EQ(own_dir_of(machine, "/home/ann/runs/x", "/home/ann"), "/big/x");
}

}  // namespace
}  // namespace motley
