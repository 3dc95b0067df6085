// Locations of the parts of a checkpoint, and the moves before a training resumes.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cluster/run/rank_folders.h"
#include "cluster/stores/copy_plan.h"
#include "cluster/stores/plan_moves.h"
#include "cluster/stores/repair.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

Store store_of(const std::string& id, const std::vector<std::string>& machines) {
  Store store{.answer = {.place = {"/runs/x", id.empty(), id}, .free_bytes = 1000},
              .machines = machines};
  return store;
}

// desk is the launcher's machine; the others have machine-local folders.
Stores three_stores() {
  Stores stores;
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
RestorePoint point_of(const std::map<int, std::vector<StoreId>>& holders) {
  RestorePoint point;
  for (const auto& [rank, stores] : holders) {
    const std::string number = std::to_string(rank);
    const std::string model = "model-0000" + std::to_string(rank + 1) + "-of-00003.safetensors";
    const std::string optimizer =
        "optimizer-0000" + std::to_string(rank + 1) + "-of-00003.safetensors";
    point.texts.manifest.files.push_back({model, 100, "", {{"w" + number, ""}}});
    point.texts.manifest.files.push_back({optimizer, 200, "", {{"exp_avg/w" + number, ""}}});
    point.holders[model] = stores;
    point.holders[optimizer] = stores;
  }
  return point;
}

std::vector<StoreMoves> moves_for(const RestorePoint& point, const Plan& plan) {
  const Stores stores = three_stores();
  return plan_moves(point, parameters_by_store(plan, model_of(3), stores), stores,
                    cluster_of_three());
}

const StoreMoves& of(const std::vector<StoreMoves>& moves, const StoreId& store) {
  return *std::ranges::find(moves, store, &StoreMoves::store);
}

TEST(PlanMoves, NothingGoesWhereEachMachineHasWhatItNeeds) {
  const auto moves =
      moves_for(point_of({{0, {""}}, {1, {"b"}}, {2, {"l"}}}), plan_on({"desk", "box", "lap"}));
  ASSERT_EQ(moves.size(), 3U);
  for (const StoreMoves& each : moves) {
    EXPECT_TRUE(each.order.makes_view);
    EXPECT_EQ(each.order.linked.size(), 2U);
    EXPECT_THAT(each.order.incoming, IsEmpty());
    EXPECT_THAT(each.order.outgoing, IsEmpty());
  }
}

TEST(PlanMoves, AMachineWithoutRanksGivesWhatOthersNeed) {
  const auto moves =
      moves_for(point_of({{0, {""}}, {1, {"b"}}, {2, {"l"}}}), plan_on({"desk", "box", "box"}));
  ASSERT_EQ(moves.size(), 3U);
  const MoveOrder& box = of(moves, "b").order;
  const MoveOrder& lap = of(moves, "l").order;
  EXPECT_EQ(box.linked.size(), 2U);
  ASSERT_EQ(box.incoming.size(), 2U);
  EXPECT_EQ(box.incoming[0].peer, lap.self);
  EXPECT_FALSE(lap.makes_view);
  ASSERT_EQ(lap.outgoing.size(), 2U);
  EXPECT_EQ(lap.outgoing[1].file, box.incoming[1].file);
  EXPECT_EQ(lap.outgoing[1].stream, box.incoming[1].stream);
  EXPECT_NE(lap.outgoing[0].stream, lap.outgoing[1].stream);
}

TEST(PlanMoves, OfSeveralHoldersTheOneWithTheFastestLinkGives) {
  const auto moves =
      moves_for(point_of({{0, {"b"}}, {1, {"b"}}, {2, {"", "l"}}}), plan_on({"box", "box", "box"}));
  EXPECT_EQ(of(moves, "l").order.outgoing.size(), 2U);
  EXPECT_EQ(moves.size(), 2U) << "desk has nothing to do";
}

TEST(PlanMoves, TheWholeCheckpointInTheLaunchersFolderIsReadAsItLies) {
  const auto moves = moves_for(point_of({{0, {""}}, {1, {"", "b"}}, {2, {"", "l"}}}),
                               plan_on({"desk", "desk", "desk"}));
  EXPECT_THAT(moves, IsEmpty());
}

TEST(FileLocations, SayWhereEachFileIsWholeAndWhereItIsDamaged) {
  Stores stores = three_stores();
  stores.by_id["b"].answer.whole = {"model", "optimizer"};
  stores.by_id["l"].answer.whole = {"model"};
  stores.by_id[""].answer.damaged = {"optimizer"};
  const auto all = file_locations({{"model"}, {"optimizer"}, {"other"}}, stores);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_THAT(all[0].whole, ElementsAre("b", "l"));
  EXPECT_THAT(all[1].whole, ElementsAre("b"));
  EXPECT_THAT(all[1].damaged, ElementsAre(""));
  EXPECT_THAT(all[2].whole, IsEmpty());
}

// An intact copy elsewhere is not enough: the damaged file would be found by queries of that
// folder.
TEST(MissingCopies, OfADamagedFileGoWhereItIsDamaged) {
  const RestorePoint point = point_of({{0, {"", "l"}}});
  const std::string model = "model-00001-of-00003.safetensors";
  for (const char* damaged : {"b", "l"}) {
    Stores stores = three_stores();
    stores.by_id[damaged].answer.damaged = {model};
    RestorePoint found = point;
    std::erase(found.holders[model], damaged);
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

TEST(RankFolders, EachFolderHasOneKeeperAndItsFilesAreKnown) {
  const Plan plan = plan_on({"box", "desk", "box"});
  const auto keepers = plan_keepers(plan, three_stores(), cluster_of_three(), 1);
  ASSERT_EQ(keepers.size(), 2U);
  EXPECT_THAT(keepers.at(0).copies_to, ElementsAre(Rank{1}));
  EXPECT_THAT(keepers.at(1).copies_from, ElementsAre(Rank{0}));
  EXPECT_THAT(ranks_elsewhere(plan, three_stores()), ElementsAre(0, 2));
  EXPECT_EQ(files_by_keeper(plan, three_stores()).at(0).size(), 4U);
  EXPECT_THAT(plan_keepers(plan_on({"desk", "desk"}), three_stores(), cluster_of_three(), 1),
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
