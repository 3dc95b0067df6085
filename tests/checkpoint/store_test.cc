// A checkpoint whose files are distributed over several folders: the inventory of each folder, and
// operations on it.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/fencing_token.h"
#include "checkpoint/folders.h"
#include "checkpoint/replication/folder_id.h"
#include "checkpoint/replication/intact_file.h"
#include "checkpoint/replication/inventory.h"
#include "checkpoint/replication/restored_view.h"
#include "checkpoint/replication/shard_set.h"
#include "checkpoint/replication/store_location.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using motley::testing::kLaunch;
using motley::testing::names_in;
using motley::testing::TempFolder;
using motley::testing::TestRun;
using motley::testing::write_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kLater = "000004-0123456789abcdef";

// A checkpoint of two ranks, and the folder of the machine that has the second rank's files.
class Scattered : public ::testing::Test {
 protected:
  Scattered() {
    const auto committed = run_.save(10);
    EXPECT_TRUE(committed.ok());
    texts_ = *read_metadata(*committed);
    files_ = tensor_files(texts_.manifest);
  }

  // Writes the files that a save in progress leaves there.
  void write_part(const std::string& launch) const {
    const fs::path partial = partial_folder({own(), launch, 10});
    fs::create_directories(partial);
    for (const char* part : {"model", "optimizer"}) {
      const std::string name = shard_file_name(part, 1, 2);
      fs::copy_file(checkpoint_folder(run_.dir(), 10) / name, partial / name);
    }
  }

  [[nodiscard]] const fs::path& own() const { return own_.path(); }

  [[nodiscard]] StoreContents look() const {
    return *take_inventory({own(), false, "0011223344556677"}, {.wanted = WantedStep{10, files_}},
                           nullptr);
  }

  TestRun run_;
  TempFolder own_;
  CheckpointMetadata texts_;
  std::vector<WrittenFile> files_;
};

TEST_F(Scattered, PartIsNotAdoptedOnceThatIsStopped) {
  write_part(kLaunch);
  std::stop_source stop;
  stop.request_stop();
  ProgressCounter work;
  const Result<void> stopped = adopt_shards(own(), kLater, texts_, &work, stop.get_token());
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(work.count(), 0U) << "nothing is read any more";
  EXPECT_EQ(look().intact.size(), 2U);
  ASSERT_TRUE(adopt_shards(own(), kLater, texts_, nullptr).ok());
  // A file that was not read does not count as damaged.
  EXPECT_FALSE(adopt_shards(own(), kLater, texts_, &work, stop.get_token()).ok());
  EXPECT_EQ(look().intact.size(), 2U);
}

TEST_F(Scattered, SaysWhoseItIs) {
  EXPECT_EQ(look().run, "");
  const Result<std::string> id = make_folder_id();
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(write_run_id(own(), *id).ok());
  EXPECT_EQ(look().run, *id);
  write_bytes(own() / "run.json", "{\"format\": \"motley.run\", \"id\": \"desk\"}");
  const Result<std::string> damaged = read_run_id(own());
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(describe(damaged.error()), HasSubstr("not 16 hexadecimal digits"));
}

TEST_F(Scattered, PartIsKeptOfWhatTheLaunchWrote) {
  write_part(kLaunch);
  EXPECT_THAT(look().intact, ElementsAre("model-00002-of-00002.safetensors",
                                         "optimizer-00002-of-00002.safetensors"));
  ASSERT_TRUE(store_shards(own(), kLaunch, texts_).ok());
  EXPECT_THAT(names_in(checkpoints_root(own())), ElementsAre("step-000010"));
  EXPECT_THAT(names_in(checkpoint_folder(own(), 10)),
              ElementsAre("config.json", "manifest.json", "model-00002-of-00002.safetensors",
                          "model.safetensors.index.json", "optimizer-00002-of-00002.safetensors"));
  EXPECT_TRUE(store_shards(own(), kLaunch, texts_).ok()) << "done already";
  const StoreContents contents = look();
  EXPECT_THAT(contents.steps, ElementsAre(10));
  EXPECT_EQ(contents.intact.size(), 2U);
  EXPECT_THAT(contents.damaged, IsEmpty());
}

TEST_F(Scattered, PartIsAdoptedOfWhatAnEarlierLaunchLeft) {
  write_part(kLaunch);
  ASSERT_TRUE(adopt_shards(own(), kLater, texts_, nullptr).ok());
  EXPECT_EQ(look().intact.size(), 2U);
  ASSERT_TRUE(prune_to(own(), {10}, kLater).ok());
  EXPECT_THAT(names_in(checkpoints_root(own())), ElementsAre("step-000010"));
  EXPECT_EQ(look().intact.size(), 2U) << "they did not go with the folder that they lay in";
}

TEST_F(Scattered, PartOfAnotherStateIsReplacedWithItsFilesThatStillCount) {
  write_part(kLaunch);
  ASSERT_TRUE(store_shards(own(), kLaunch, texts_).ok());
  // The step was saved again with other values.
  const std::vector<Shard> shards = *run_.write(10, 2, 2);
  const CheckpointMetadata newer = *read_metadata(*run_.commit(10, shards));
  ASSERT_TRUE(adopt_shards(own(), kLater, newer, nullptr).ok());
  EXPECT_EQ(read_metadata(checkpoint_folder(own(), 10))->manifest.parameter_hash,
            newer.manifest.parameter_hash);
  EXPECT_THAT(look().intact, IsEmpty()) << "of the older state nothing is left";
}

TEST_F(Scattered, DamagedFileIsNamedAndNeverAdopted) {
  write_part(kLaunch);
  const fs::path file = partial_folder({own(), kLaunch, 10}) / "model-00002-of-00002.safetensors";
  std::string bytes = motley::testing::read_bytes(file);
  bytes.back() ^= 1;
  write_bytes(file, bytes);
  EXPECT_THAT(look().damaged, ElementsAre("model-00002-of-00002.safetensors"));
  ASSERT_TRUE(adopt_shards(own(), kLater, texts_, nullptr).ok());
  EXPECT_FALSE(fs::exists(checkpoint_folder(own(), 10) / "model-00002-of-00002.safetensors"));
}

TEST_F(Scattered, LinksAreNotFollowed) {
  const fs::path partial = partial_folder({own(), kLaunch, 10});
  fs::create_directories(partial);
  const std::string name = "model-00002-of-00002.safetensors";
  fs::create_symlink(checkpoint_folder(run_.dir(), 10) / name, partial / name);
  EXPECT_THAT(look().intact, IsEmpty());
  EXPECT_THAT(look().damaged, ElementsAre(name));
}

TEST_F(Scattered, ViewReadsWhatItsMachineNeeds) {
  const SaveLocation location{run_.dir(), kLater, 10};
  // TestRun's distribution assigns these to rank 1.
  const std::vector<RequiredFile> needs =
      required_files(texts_.manifest, {"h.0.ln_1.bias", "ln_f.weight"});
  ASSERT_EQ(needs.size(), 2U);
  EXPECT_TRUE(needs[0].is_all());
  ASSERT_TRUE(begin_restored_view(location).ok());
  for (const RequiredFile& need : needs) {
    ASSERT_TRUE(
        link_into_restored_view(location, checkpoint_folder(run_.dir(), 10) / need.file.name).ok());
  }
  ASSERT_TRUE(end_restored_view(location, texts_.manifest, needs).ok());
  const auto reader = CheckpointReader::open(restored_view_folder(location));
  ASSERT_TRUE(reader.ok()) << describe(reader.error());
  std::vector<float> values(2);
  EXPECT_TRUE(reader->read("h.0.ln_1.bias", {2}, values).ok());
  EXPECT_EQ(values[1], 1);
  EXPECT_TRUE(reader->read("exp_avg/h.0.ln_1.bias", {2}, values).ok());
  EXPECT_FALSE(reader->has("wte.weight"));
  EXPECT_THAT(run_.steps(), ElementsAre(10)) << "a view is no checkpoint";
  ASSERT_TRUE(prune_to(run_.dir(), {10}, kLater).ok());
  EXPECT_TRUE(fs::exists(restored_view_folder(location))) << "this launch may still read it";
  ASSERT_TRUE(prune_to(run_.dir(), {10}, kLaunch).ok());
  EXPECT_FALSE(fs::exists(restored_view_folder(location)));
}

TEST_F(Scattered, PartIsReadInThePlaceOfAView) {
  write_part(kLaunch);
  ASSERT_TRUE(adopt_shards(own(), kLater, texts_, nullptr).ok());
  const fs::path part = checkpoint_folder(own(), 10);
  Manifest needed = texts_.manifest;
  std::erase_if(needed.files,
                [](const WrittenFile& file) { return !file.name.starts_with("model-00002"); });
  EXPECT_TRUE(is_in_shard_set({own(), kLater, 10}, needed));
  needed.state.step = 9;
  EXPECT_FALSE(is_in_shard_set({own(), kLater, 10}, needed)) << "it is of another state";
  needed.state.step = 10;
  needed.files[0].hash = std::string(32, '0');
  EXPECT_FALSE(is_in_shard_set({own(), kLater, 10}, needed)) << "it is another file";
}

TEST_F(Scattered, OnlyWhatIsThereIsToBeRead) {
  EXPECT_EQ(bytes_to_read(own(), 10, files_), 0U);
  write_part(kLaunch);
  std::uint64_t bytes = 0;
  for (const WrittenFile& file : files_) {
    if (file.name.find("00002-of") != std::string::npos) bytes += file.bytes;
  }
  EXPECT_EQ(bytes_to_read(own(), 10, files_), bytes);
}

// A launch that resumed before a step that others have saved: its next save is at an earlier step
// than theirs.
TEST_F(Scattered, WhatTheLaunchWritesStaysBesideLaterStepsOfOthers) {
  const SaveLocation written{run_.dir(), kLater, 20};
  fs::create_directories(partial_folder(written));
  ASSERT_TRUE(run_.save(30).ok());
  ASSERT_TRUE(begin_restored_view({run_.dir(), kLater, 10}).ok());
  ASSERT_TRUE(prune_to(run_.dir(), {10, 30}, kLater, 10).ok());
  EXPECT_TRUE(fs::exists(partial_folder(written)));
  EXPECT_TRUE(fs::exists(restored_view_folder({run_.dir(), kLater, 10})));
  ASSERT_TRUE(prune_to(run_.dir(), {10, 30}, kLater, 20).ok());
  EXPECT_FALSE(fs::exists(partial_folder(written))) << "that save has ended";
  EXPECT_FALSE(fs::exists(restored_view_folder({run_.dir(), kLater, 10})));
}

// A step that a launch skipped on resume, because its manifest is unreadable.
TEST_F(Scattered, WhatCannotBeToldStaysUntilItsStepIsDoneAgain) {
  ASSERT_TRUE(run_.save(20).ok());
  ASSERT_TRUE(run_.save(30).ok());
  write_bytes(checkpoint_folder(run_.dir(), 30) / "manifest.json", "{");
  ASSERT_TRUE(prune_to(run_.dir(), {10}, kLater, 10).ok());
  EXPECT_THAT(run_.steps(), ElementsAre(10, 30)) << "a readable one is removed";
  EXPECT_EQ(names_in(checkpoint_folder(run_.dir(), 30)).size(), 7U);
  ASSERT_TRUE(run_.save(40).ok());
  ASSERT_TRUE(prune_to(run_.dir(), {10, 40}, kLater).ok());
  EXPECT_THAT(run_.steps(), ElementsAre(10, 40));
}

TEST_F(Scattered, NeedsAreTensorsOfFiles) {
  const std::vector<RequiredFile> needs = required_files(texts_.manifest, {"h.0.ln_1.weight"});
  ASSERT_EQ(needs.size(), 2U);
  EXPECT_EQ(needs[0].file.name, "model-00001-of-00002.safetensors");
  EXPECT_THAT(needs[0].tensors, ElementsAre("h.0.ln_1.weight"));
  EXPECT_FALSE(needs[0].is_all());
  EXPECT_THAT(needs[1].tensors, ElementsAre("exp_avg/h.0.ln_1.weight"));
}

TEST(StoreLocation, IsTheLaunchersWhereItsMarkIsSeen) {
  TempFolder launchers;
  fs::create_directories(launches_folder(launchers.path()));
  std::ofstream(launch_file(launchers.path(), 3)) << "{\"launch\":\"" << kLaunch << "\"}";
  const TempFolder other;
  const std::string dir = launchers.path().string();
  const std::string own = (other.path() / "run").string();
  const auto seen = find_store({dir, own, kLaunch}, IfAbsent::kMake);
  ASSERT_TRUE(seen.ok());
  EXPECT_TRUE(seen->is_shared);
  EXPECT_FALSE(fs::exists(own));
  const auto under_another_path = find_store({"", dir, kLaunch}, IfAbsent::kMake);
  EXPECT_TRUE(under_another_path->is_shared);
  const auto copy = find_store({dir, own, kLater}, IfAbsent::kLeave);
  ASSERT_TRUE(copy.ok());
  EXPECT_FALSE(copy->is_shared) << "a copy of the folder has another launch's mark";
  EXPECT_FALSE(fs::exists(own));
}

TEST(StoreLocation, HasOneIdForAllWhoSeeIt) {
  const TempFolder other;
  const std::string own = (other.path() / "runs/one").string();
  const auto first = find_store({"/nowhere", own, kLaunch}, IfAbsent::kMake);
  ASSERT_TRUE(first.ok()) << describe(first.error());
  EXPECT_EQ(first->id.size(), 16U);
  EXPECT_EQ(find_store({"/nowhere", own, kLater}, IfAbsent::kMake)->id, first->id);
  EXPECT_NE(find_store({"/nowhere", own + "2", kLater}, IfAbsent::kMake)->id, first->id);
  std::ofstream(fs::path(own) / "store.json") << "{\"id\":\"../../x\"}";
  const auto forged = find_store({"/nowhere", own, kLaunch}, IfAbsent::kMake);
  ASSERT_FALSE(forged.ok());
  EXPECT_THAT(forged.error().what, HasSubstr("store.json"));
}

}  // namespace
}  // namespace motley
