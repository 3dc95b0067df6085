// Free space of the disks, and the progress of file moves to the machines.
#include "cluster/replication/free_space.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/replication/shards_progress.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "l" is lap's machine-local folder.
StoreInventory stores_with_free(std::uint64_t free_bytes) {
  StoreInventory stores;
  stores.by_id["l"] = {.contents = {.location = {"/runs/x", false, "l"}, .free_bytes = free_bytes},
                       .machines = {"lap"}};
  return stores;
}

// A checkpoint of two files with two tensors each; `lacking` are moved.
StoreTransfers moves_of(const std::vector<TransferItem>& lacking) {
  StoreTransfers transfers{.store = "l", .machine = "lap", .order = {}};
  transfers.order.manifest.files.push_back({"model", 100, "", {{"a", ""}, {"b", ""}}});
  transfers.order.manifest.files.push_back({"optimizer", 200, "", {{"c", ""}, {"d", ""}}});
  transfers.order.incoming = lacking;
  return transfers;
}

TransferItem move_of(const std::string& file, const std::vector<std::string>& tensors = {}) {
  TransferItem move;
  move.file = file;
  move.tensors = tensors;
  return move;
}

TEST(RequireRoom, ReadingWhatLiesThereNeedsNone) {
  EXPECT_TRUE(require_free_space({moves_of({})}, stores_with_free(0)).ok());
}

TEST(RequireRoom, NamesTheMachineAndTheBytesWhereWhatComesDoesNotFit) {
  const StoreInventory stores = stores_with_free(249);
  EXPECT_TRUE(require_free_space({moves_of({move_of("optimizer"), move_of("model", {"a"})})},
                                 stores_with_free(250))
                  .ok());
  const Result<void> refused =
      require_free_space({moves_of({move_of("optimizer"), move_of("model", {"a"})})}, stores);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(refused.error().what, HasSubstr("the disk of lap"));
  EXPECT_THAT(refused.error().cause,
              AllOf(HasSubstr("250 bytes are to be copied"), HasSubstr("249 bytes are free"),
                    HasSubstr("1 bytes are missing")));
  EXPECT_THAT(refused.error().remedy, HasSubstr("/runs/x on lap"));
}

TEST(SavesWithoutRoom, AreToldBeforeTheyFail) {
  ModelSpec model;
  LayerSpec layer{.name = "layer"};
  layer.parameters.push_back({.name = "w", .shape = {2, 5}});
  layer.parameters.push_back({.name = "other", .shape = {7}});
  model.layers.push_back(layer);
  const auto needed = save_bytes({{"l", {"w"}}}, model, /*moments_per_parameter=*/2);
  EXPECT_THAT(needed, ElementsAre(std::pair(StoreId("l"), std::uint64_t{120})));
  EXPECT_THAT(saves_without_space(needed, stores_with_free(120)), IsEmpty());
  EXPECT_THAT(saves_without_space(needed, stores_with_free(119)),
              ElementsAre(AllOf(HasSubstr("the disk of lap has too little space for a save"),
                                HasSubstr("/runs/x"))));
}

TEST(ShardsProgress, AddsUpWhatAllMachinesTell) {
  ShardsProgress progress("verifying", nullptr);
  progress.take(0, {10, 100});
  progress.take(1, {0, 0});  // has no work
  progress.take(2, {70, 60});
  EXPECT_EQ(progress.sum().done, 70U) << "never more than there is";
  EXPECT_EQ(progress.sum().total, 160U);
  progress.take(0, {100, 100});
  EXPECT_EQ(progress.sum().done, 160U);
}

}  // namespace
}  // namespace motley
