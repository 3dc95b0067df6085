#include "checkpoint/checkpoint.h"

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using testing::kLaunch;
using testing::read_bytes;
using testing::TestRun;
using ::testing::UnorderedElementsAre;
using testing::views;
using testing::write_bytes;

TEST(Checkpoint, IsAFolderThatHuggingFaceKnows) {
  const TestRun run;
  const auto folder = run.save(100, 2);
  ASSERT_OK(folder);
  EXPECT_EQ(*folder, run.dir() / "checkpoints" / "step-000100");
  const auto index = parse_json(read_bytes(*folder / "model.safetensors.index.json"), "index");
  ASSERT_OK(index);
  EXPECT_EQ((*index)["metadata"]["total_size"], 11 * 4);
  EXPECT_EQ((*index)["weight_map"].size(), 4U);
  EXPECT_EQ((*index)["weight_map"]["wte.weight"], "model-00001-of-00002.safetensors");
  EXPECT_EQ((*index)["weight_map"]["ln_f.weight"], "model-00002-of-00002.safetensors");
  const auto config = parse_json(read_bytes(*folder / "config.json"), "config");
  ASSERT_OK(config);
  EXPECT_EQ((*config)["model_type"], "gpt2");
  EXPECT_OK(verify_checkpoint(*folder));
}

TEST(Checkpoint, ManifestKeepsStateFilesAndConfiguration) {
  const TestRun run;
  const auto folder = run.save(100, 1);
  ASSERT_OK(folder);
  const auto manifest = read_manifest(*folder);
  ASSERT_OK(manifest);
  const CheckpointState expected = TestRun::state(100);
  EXPECT_EQ(manifest->state.step, 100);
  EXPECT_EQ(manifest->state.samples, expected.samples);
  EXPECT_EQ(manifest->state.tokens, expected.tokens);
  EXPECT_EQ(manifest->state.optimizer_updates, 99);
  EXPECT_EQ(manifest->state.seed, -7);
  EXPECT_EQ(manifest->state.model_hash, "aa11");
  EXPECT_EQ(manifest->state.model_family, "gpt2");
  EXPECT_EQ(manifest->state.plan_hash, "bb22");
  EXPECT_EQ(manifest->state.optimizer, "adamw");
  EXPECT_EQ(manifest->config["train"]["seed"], -7);
  std::vector<std::string> names;
  for (const WrittenFile& file : manifest->files) names.push_back(file.name);
  EXPECT_THAT(
      names, ElementsAre("model-00001-of-00001.safetensors", "optimizer-00001-of-00001.safetensors",
                         "model.safetensors.index.json", "config.json"));
}

TEST(Checkpoint, ParameterHashDoesNotDependOnSharding) {
  const TestRun run;
  std::vector<std::string> hashes;
  for (const int ranks : {1, 2, 3, 7}) {  // with 7, three ranks hold no parameter
    const auto folder = run.save(ranks, ranks);
    ASSERT_OK(folder);
    ASSERT_OK(verify_checkpoint(*folder));
    hashes.push_back(read_manifest(*folder)->parameter_hash);
  }
  EXPECT_THAT(hashes, ::testing::Each(hashes[0]));
  const auto other = run.save(10, 2, 1.5F);
  ASSERT_OK(other);
  EXPECT_NE(read_manifest(*other)->parameter_hash, hashes[0]);
}

TEST(Checkpoint, ParameterHashIsThatOfTheDocumentedLines) {
  EXPECT_EQ(parameter_hash({{"b", "22"}, {"a", "11"}}),
            hash128_hex(std::as_bytes(std::span(std::string_view("11 a\n22 b\n")))));
  EXPECT_NE(parameter_hash({{"a", "22"}, {"b", "11"}}), parameter_hash({{"a", "11"}, {"b", "22"}}));
}

TEST(Checkpoint, WithoutModelConfigurationHasNone) {
  const TestRun run;
  const auto shards = run.write(5, 1, 1);
  ASSERT_OK(shards);
  const auto folder =
      commit_checkpoint(run.dir(), kLaunch, TestRun::state(5), *shards, Json(), Json());
  ASSERT_OK(folder);
  EXPECT_FALSE(std::filesystem::exists(*folder / "config.json"));
  EXPECT_OK(verify_checkpoint(*folder));
}

TEST(Checkpoint, ShardReportsSurviveTheWire) {
  const TestRun run;
  const auto shards = run.write(5, 2, 1);
  ASSERT_OK(shards);
  std::vector<Shard> received;
  for (const Shard& shard : *shards) {
    const auto json = parse_json(shard_to_json(shard).dump(), "rank");
    ASSERT_OK(json);
    const auto back = shard_from_json(*json, "rank");
    ASSERT_OK(back);
    received.push_back(*back);
  }
  const auto folder = run.commit(5, received);
  ASSERT_OK(folder);
  EXPECT_OK(verify_checkpoint(*folder));
}

TEST(Checkpoint, BadShardReportsAreRefused) {
  const TestRun run;
  const Json good = shard_to_json(run.write(5, 1, 1)->front());
  const auto with = [&](const char* part, const char* key, const Json& value) {
    Json bad = good;
    bad[part][key] = value;
    return shard_from_json(bad, "rank 0");
  };
  EXPECT_CORRUPT(with("model", "name", "../evil"), "leaves its folder");
  EXPECT_CORRUPT(with("model", "name", ""), "leaves its folder");
  EXPECT_CORRUPT(with("model", "name", ".."), "leaves its folder");
  EXPECT_CORRUPT(with("model", "hash", "xyz"), "not a hash");
  EXPECT_CORRUPT(with("optimizer", "bytes", -1), "negative");
  EXPECT_CORRUPT(with("optimizer", "tensors", 3), "'tensors'");
  EXPECT_CORRUPT(shard_from_json(Json::array(), "rank 0"), "rank 0");
  EXPECT_CORRUPT(shard_from_json(Json{{"rank", 0}}, "rank 0"), "key 'model'");
}

TEST(CheckpointCommit, RefusesMissingDoubleAndForeignRanks) {
  const TestRun run;
  const auto shards = run.write(5, 2, 1);
  ASSERT_OK(shards);
  EXPECT_CORRUPT(run.commit(5, {}), "no rank has reported");
  EXPECT_CORRUPT(run.commit(5, {(*shards)[0], (*shards)[0]}), "rank 0 has reported twice");
  EXPECT_CORRUPT(run.commit(5, {(*shards)[1]}), "rank 1 has reported among 1 ranks");
  EXPECT_CORRUPT(run.commit(5, {(*shards)[0]}), "in place of 'model-00001-of-00001.safetensors'");
  EXPECT_TRUE(run.steps().empty());
}

TEST(CheckpointCommit, RefusesAParameterInTwoShards) {
  const TestRun run;
  const auto tensors = TestRun::parameters(1);
  std::vector<Shard> shards;
  for (const int rank : {0, 1}) {
    const auto shard = write_shard({run.dir(), kLaunch, 5}, rank, 2, views(tensors), {});
    ASSERT_OK(shard);
    shards.push_back(*shard);
  }
  EXPECT_CORRUPT(run.commit(5, shards), "parameter 'h.0.ln_1.bias' is in model-00001-of-00002");
}

// Two ranks that hold one parameter have different member numbers.
TEST(CheckpointCommit, RefusesAResidualInTwoShards) {
  const TestRun run;
  const auto tensors = TestRun::parameters(1);
  std::vector<testing::OwnedTensor> residuals = {{"residual.0/ln_f.weight", {1}, {1}}};
  std::vector<Shard> shards;
  for (const int rank : {0, 1}) {
    const auto shard =
        write_shard({run.dir(), kLaunch, 5}, rank, 2,
                    rank == 0 ? views(tensors) : std::vector<TensorView>(), views(residuals));
    ASSERT_OK(shard);
    shards.push_back(*shard);
  }
  EXPECT_CORRUPT(run.commit(5, shards),
                 "moment 'residual.0/ln_f.weight' is in optimizer-00001-of-00002");
  residuals[0].name = "residual.1/ln_f.weight";
  const auto other = write_shard({run.dir(), kLaunch, 5}, 1, 2, {}, views(residuals));
  ASSERT_OK(other);
  EXPECT_OK(run.commit(5, {shards[0], *other}));
}

TEST(CheckpointCommit, RefusesAMomentWithoutItsParameter) {
  const TestRun run;
  const std::vector<testing::OwnedTensor> moments = {{"exp_avg/elsewhere", {1}, {1}}};
  const auto shard = write_shard({run.dir(), kLaunch, 5}, 0, 1, {}, views(moments));
  ASSERT_OK(shard);
  EXPECT_CORRUPT(run.commit(5, {*shard}), "'exp_avg/elsewhere' belongs to no parameter");
}

TEST(CheckpointCommit, RefusesFilesThatAreNotAsReported) {
  const TestRun run;
  auto shards = run.write(5, 2, 1);
  ASSERT_OK(shards);
  const auto path = partial_folder({run.dir(), kLaunch, 5}) / "model-00002-of-00002.safetensors";
  const std::string good = read_bytes(path);
  write_bytes(path, good + "x");
  EXPECT_CORRUPT(run.commit(5, *shards), "model-00002-of-00002.safetensors has");
  write_bytes(path, good);
  auto renamed = *shards;
  auto& hashes = renamed[1].model.tensor_hashes;
  hashes["other"] = hashes.extract("ln_f.weight").mapped();
  EXPECT_CORRUPT(run.commit(5, renamed), "does not contain the written tensors");
  std::filesystem::remove(path);
  EXPECT_CORRUPT(run.commit(5, *shards), "No such file");
}

TEST(CheckpointCommit, SweepsAwayWhatAnInterruptedAttemptLeft) {
  const TestRun run;
  ASSERT_OK(run.write(5, 3, 1));  // the other three ranks died before the commit
  const auto folder = run.save(5, 2);
  ASSERT_OK(folder);
  EXPECT_OK(verify_checkpoint(*folder));
}

TEST(CheckpointCommit, ReplacesTheSameStep) {
  const TestRun run;
  ASSERT_OK(run.save(5, 3, 1));
  const auto folder = run.save(5, 1, 2);
  ASSERT_OK(folder);
  ASSERT_OK(verify_checkpoint(*folder));
  std::vector<float> value(1);
  ASSERT_OK(CheckpointReader::open(*folder)->read("ln_f.weight", {1}, value));
  EXPECT_EQ(value[0], 4);
  EXPECT_THAT(run.names(), ElementsAre("step-000005"));
}

TEST(CheckpointList, IsSortedByStepAndHoldsOnlyCommittedOnes) {
  const TestRun run;
  EXPECT_TRUE(run.steps().empty());
  for (const std::int64_t step : {1000000, 20, 3}) ASSERT_OK(run.save(step));
  ASSERT_OK(run.write(50, 1, 1));
  const auto root = run.dir() / "checkpoints";
  std::filesystem::create_directory(root / "step-000060");
  for (const char* name : {"step-7", "step-0000070", "step-00007x", "notes", "step--00001"}) {
    std::filesystem::create_directory(root / name);
    write_bytes(root / name / "manifest.json", "{}");
  }
  EXPECT_THAT(run.steps(), ElementsAre(3, 20, 1000000));
}

TEST(CheckpointPrune, KeepsTheNewest) {
  const TestRun run;
  for (const std::int64_t step : {1, 2, 3, 4}) ASSERT_OK(run.save(step));
  ASSERT_OK(prune_checkpoints(run.dir(), {0}, kLaunch));
  EXPECT_THAT(run.steps(), ElementsAre(1, 2, 3, 4));
  ASSERT_OK(prune_checkpoints(run.dir(), {9}, kLaunch));
  EXPECT_THAT(run.steps(), ElementsAre(1, 2, 3, 4));
  ASSERT_OK(prune_checkpoints(run.dir(), {2}, kLaunch));
  EXPECT_THAT(run.steps(), ElementsAre(3, 4));
  ASSERT_OK(prune_checkpoints(run.dir(), {1}, kLaunch));
  EXPECT_THAT(run.names(), ElementsAre("step-000004"));
}

TEST(CheckpointPrune, KeepsMultiplesAndOneThatIsNamed) {
  const TestRun run;
  for (const std::int64_t step : {5, 10, 12, 15, 20, 22}) ASSERT_OK(run.save(step));
  ASSERT_OK(prune_checkpoints(run.dir(), {.newest = 0, .every = 10}, kLaunch));
  EXPECT_EQ(run.steps().size(), 6U) << "all";
  ASSERT_OK(prune_checkpoints(run.dir(), {.newest = 1, .every = 10, .always = {12}}, kLaunch));
  EXPECT_THAT(run.steps(), ElementsAre(10, 12, 20, 22));
  ASSERT_OK(prune_checkpoints(run.dir(), {.newest = 2}, kLaunch));
  EXPECT_THAT(run.steps(), ElementsAre(20, 22));
}

TEST(CheckpointPrune, RemovesStalePartialFoldersButNotOneBeingWritten) {
  const TestRun run;
  ASSERT_OK(run.save(10));
  for (const std::int64_t step : {5, 10, 15}) ASSERT_OK(run.write(step, 1, 1));
  const auto root = run.dir() / "checkpoints";
  std::filesystem::create_directory(root / ".step-000004.removed");
  std::filesystem::create_directory(root / "mine");
  // Of an earlier launch, and of a version whose folders had no launch in their names.
  std::filesystem::create_directory(root / ".step-000020.000002-0123456789abcdef.partial");
  std::filesystem::create_directory(root / ".step-000020.partial");
  ASSERT_OK(prune_checkpoints(run.dir(), {3}, kLaunch));
  EXPECT_THAT(
      run.names(),
      UnorderedElementsAre("step-000010", ".step-000015.000003-0123456789abcdef.partial", "mine"));
}

TEST(CheckpointPrune, WithoutAnyCheckpointRemovesNothingOfThisLaunch) {
  const TestRun run;
  EXPECT_OK(prune_checkpoints(run.dir(), {3}, kLaunch));
  ASSERT_OK(run.write(5, 1, 1));
  EXPECT_OK(prune_checkpoints(run.dir(), {3}, kLaunch));
  EXPECT_THAT(run.names(), ElementsAre(".step-000005.000003-0123456789abcdef.partial"));
}

}  // namespace
}  // namespace motley
