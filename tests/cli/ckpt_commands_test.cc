// The commands of `motley ckpt`, called with a user's command lines.
#include <fmt/format.h>

#include <csignal>

#include "checkpoint/convert/checkpoint_writer.h"
#include "checkpoint/lock/run_lock.h"
#include "tests/checkpoint/convert_fixture.h"
#include "tests/cli/ckpt_fixture.h"

namespace motley {
namespace {

using ::testing::AllOf;
using testing::ckpt;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names_in;
using testing::Said;
using testing::save_run;
using testing::small_config;
using testing::TempFolder;

class Ckpt : public ::testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const {
    return (folder_.path() / name).string();
  }

  TempFolder folder_;
};

TEST_F(Ckpt, ShowListsLayersInTheModelsOrder) {
  save_run(at("run"), small_config(), 10, 3);
  const Said text = ckpt({"show", at("run"), "--tensors"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("3 files of parameters"), HasSubstr("[64, 32]"),
                              HasSubstr("model-00002-of-00003.safetensors")));
  const Json json = Json::parse(ckpt({"show", at("run"), "--json"}).out);
  std::vector<std::string> layers;
  std::uint64_t bytes = 0;
  for (const Json& layer : json["layers"]) {
    layers.push_back(layer["layer"]);
    for (const Json& tensor : layer["tensors"]) {
      bytes += tensor["bytes"].get<std::uint64_t>();
      EXPECT_EQ(tensor["optimizer_bytes"].get<std::uint64_t>(),
                2 * tensor["bytes"].get<std::uint64_t>());
    }
  }
  EXPECT_THAT(layers, ElementsAre("embed", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head"));
  EXPECT_EQ(bytes, 4 * json["parameters"].get<std::uint64_t>());
}

// The checkpoint is distributed over three machines' folders; this folder holds its own files and
// one of another machine.
TEST_F(Ckpt, ShowSaysWhoWroteWhatAndWhatLiesHere) {
  const auto folder = save_run(at("run"), small_config(), 10, 3, 1, {"desk", "box", "lap"});
  const Json whole = Json::parse(ckpt({"show", at("run"), "--json"}).out);
  for (const char* name : {"model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                           "optimizer-00003-of-00003.safetensors"}) {
    std::filesystem::remove(folder / name);
  }
  const Said text = ckpt({"show", at("run")});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(
      text.out,
      AllOf(::testing::ContainsRegex("written on +desk: [0-9.]+ KiB in 2 files, all here"),
            ::testing::ContainsRegex("box: [0-9.]+ KiB in 2 files, 1 of them here"),
            ::testing::ContainsRegex("lap: [0-9.]+ KiB in 2 files, none here"),
            HasSubstr("model-00001-of-00003.safetensors  (desk, here)\n"),
            HasSubstr("model-00003-of-00003.safetensors  (lap)\n"), HasSubstr("  config.json\n")));

  const Json json = Json::parse(ckpt({"show", at("run"), "--json"}).out);
  EXPECT_EQ(json["parameters"], describe_model(small_config().model)->parameter_count());
  EXPECT_EQ(json["tensors"], whole["tensors"]);
  EXPECT_EQ(whole["layers"].size(), 6U);
  EXPECT_FALSE(json.contains("layers")) << "they stand in files that are not here";
  ASSERT_EQ(json["machines"].size(), 3U);
  const Json& box = json["machines"][0];
  EXPECT_EQ(box["machine"], "box");
  EXPECT_EQ(box["files"], 2);
  EXPECT_EQ(box["files_here"], 1);
  std::map<std::string, std::uint64_t> bytes;
  std::map<std::string, std::uint64_t> bytes_here;
  for (const Json& file : json["files"]) {
    if (!file.contains("machine")) continue;
    const std::uint64_t size = file["bytes"].get<std::uint64_t>();
    bytes[file["machine"]] += size;
    if (file["here"]) bytes_here[file["machine"]] += size;
  }
  for (const Json& each : json["machines"]) {
    EXPECT_EQ(each["bytes"], bytes[each["machine"]]) << each;
    EXPECT_EQ(each["bytes_here"], bytes_here[each["machine"]]) << each;
  }
  const Said tensors = ckpt({"show", at("run"), "--tensors"});
  EXPECT_EQ(tensors.status, 7);
  EXPECT_THAT(tensors.err, HasSubstr("ckpt gather"));
  const Said refused = ckpt({"diff", at("run"), at("run")});
  EXPECT_EQ(refused.status, 7);
  EXPECT_THAT(refused.err, HasSubstr("\n         motley ckpt gather " +
                                     at("run/checkpoints/step-000010") + " --cluster FILE"));
}

TEST_F(Ckpt, ReshardExportAndDiffAgree) {
  save_run(at("run"), small_config(), 10, 3);
  ASSERT_EQ(ckpt({"reshard", at("run"), "--files", "2", "-o", at("two")}).status, 0);
  EXPECT_EQ(ckpt({"verify", at("two")}).status, 0);
  const Said same = ckpt({"diff", at("run"), at("two"), "--optimizer"});
  EXPECT_THAT(same.out, HasSubstr("bitwise equal: 84 tensors"));
  ASSERT_EQ(ckpt({"reshard", at("run"), "--files", "28", "-o", at("each")}).status, 0);
  EXPECT_EQ(ckpt({"verify", at("each")}).status, 0) << "a file a tensor";
  for (const std::string& from : {at("run"), at("two")}) {
    ASSERT_EQ(ckpt({"export", from, "-o", at("file"), "--one-file"}).status, 0);
    EXPECT_EQ(Json::parse(ckpt({"diff", from, at("file"), "--json"}).out)["equal"], true);
    std::filesystem::remove(at("file"));
  }
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("half"), "--dtype", "bf16"}).status, 0);
  const Json json = Json::parse(ckpt({"diff", at("run"), at("half"), "--json", "--top", "2"}).out);
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["tensors"].size(), 2U);
  EXPECT_EQ(json["compared"], 28);
  EXPECT_LT(json["tensors"][0]["relative"].get<double>(), 0x1p-8);
  EXPECT_GE(json["tensors"][0]["relative"].get<double>(),
            json["tensors"][1]["relative"].get<double>());
}

TEST_F(Ckpt, ExportWritesTheAverageOfTheWeightsOnWish) {
  Config config = small_config();
  save_run(at("without"), config, 10, 1);
  config.train.ema = 0.9;
  save_run(at("run"), config, 10, 2);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("last")}).status, 0);
  const Said said = ckpt({"export", at("run"), "-o", at("average"), "--ema"});
  ASSERT_EQ(said.status, 0) << said.err;
  for (const auto& [folder, prefix] : {std::pair{"last", ""}, std::pair{"average", "ema/"}}) {
    const auto reader = CheckpointReader::open(at(folder));
    ASSERT_TRUE(reader.ok()) << describe(reader.error());
    EXPECT_FALSE(reader->has("ema/wte.weight"));
    std::vector<float> values(64 * 32);
    ASSERT_TRUE(reader->read("wte.weight", {64, 32}, values).ok()) << folder;
    EXPECT_EQ(values, testing::values_of(std::string(prefix) + "wte.weight", values.size(), 1));
  }
  const Said refused = ckpt({"export", at("without"), "-o", at("none"), "--ema"});
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, HasSubstr("train.ema"));
  EXPECT_FALSE(std::filesystem::exists(at("none")));
}

TEST_F(Ckpt, ExportNamesWhatDoesNotGoIntoFp16) {
  const Config config = small_config();
  const auto folder = save_run(at("run"), config, 10, 1);
  const std::vector<testing::OwnedTensor> large = {{"wte.weight", {2}, {1, 70000}}};
  ASSERT_OK(write_safetensors(at("large.safetensors"), testing::views(large), {}));
  const std::vector<std::string> words = {
      "export", at("large.safetensors"), "-o", at("half"), "--one-file", "--dtype", "fp16"};
  const Said refused = ckpt(words);
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("'wte.weight'"), HasSubstr("value 1 is 70000"),
                                 HasSubstr("65504"), HasSubstr("--saturate")));
  EXPECT_FALSE(std::filesystem::exists(at("half")));
  std::vector<std::string> saturating = words;
  saturating.emplace_back("--saturate");
  EXPECT_EQ(ckpt(saturating).status, 0);
}

TEST_F(Ckpt, WhatIsMadeOfAPrivateCheckpointIsPrivate) {
  constexpr auto kAll = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  const auto folder = save_run(at("run"), small_config(), 10, 1);
  std::filesystem::permissions(folder, kAll, std::filesystem::perm_options::remove);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out")}).status, 0);
  ASSERT_EQ(ckpt({"reshard", at("run"), "--files", "2", "-o", at("cut")}).status, 0);
  for (const std::string& made :
       {at("out"), at("out") + "/model.safetensors", at("cut"), at("cut") + "/manifest.json"}) {
    const auto rights = std::filesystem::status(made).permissions();
    EXPECT_EQ(rights & kAll, std::filesystem::perms::none) << made;
  }
}

TEST_F(Ckpt, ADamagedFileThatIsReadIsNamed) {
  const auto folder = save_run(at("run"), small_config(), 10, 2);
  for (const std::string& name : names_in(folder)) {
    const std::string right = testing::read_bytes(folder / name);
    for (const std::size_t place : {std::size_t{12}, right.size() - 3}) {
      std::string wrong = right;
      wrong[place] = static_cast<char>(wrong[place] ^ 4);
      testing::write_bytes(folder / name, wrong);
      const bool is_optimizer = name.starts_with("optimizer");
      for (const std::vector<std::string>& words :
           {std::vector<std::string>{"export", at("run"), "-o", at("out")},
            {"diff", at("run"), at("run")},
            {"diff", at("run"), at("run"), "--optimizer"},
            {"reshard", at("run"), "--files", "1", "-o", at("out")}}) {
        const bool reads_all = words[0] == "reshard" || words.back() == "--optimizer";
        if (is_optimizer && !reads_all) continue;
        const Said said = ckpt(words);
        EXPECT_EQ(said.status, 7) << words[0] << name;
        EXPECT_THAT(said.err, HasSubstr(name));
        EXPECT_THAT(names_in(folder_.path()), ElementsAre("run"));
      }
    }
    testing::write_bytes(folder / name, right);
  }
}

TEST_F(Ckpt, ASignalLeavesNothingBehind) {
  save_run(at("run"), small_config(), 10, 2);
  save_run(at("run"), small_config(), 20, 2, /*version=*/2);
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &stop, &before), 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"export", at("run"), "-o", at("out")},
        {"reshard", at("run"), "--files", "1", "-o", at("out")},
        {"prune", at("run"), "--keep", "1"},
        {"verify", at("run")}}) {
    std::raise(SIGTERM);
    EXPECT_EQ(ckpt(words).status, 143) << words[0];
    EXPECT_THAT(names_in(folder_.path()), ElementsAre("run"));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(names_in(at("run") + "/checkpoints"), ElementsAre("step-000010", "step-000020"));
}

// Written by earlier versions: checkpoints without moments, from which no training can resume.
TEST_F(Ckpt, AMeanOfCheckpointsIsReadAsOneWithoutMoments) {
  const Config config = small_config();
  const ModelSpec model = *describe_model(config.model);
  save_run(at("b"), config, 30, 3, 2);
  std::vector<testing::OwnedTensor> means;
  for (const ParameterSpec& parameter : testing::parameters_of(model)) {
    const auto count = static_cast<std::size_t>(parameter.count());
    means.push_back(
        {parameter.name, parameter.shape, testing::values_of(parameter.name, count, 1)});
  }
  testing::Allowance watch;
  ASSERT_OK(write_checkpoint(at("mean"),
                             {.state = {.step = 30,
                                        .samples = 8,
                                        .model_hash = model.hash(),
                                        .model_family = model.family,
                                        .optimizer = kNoOptimizer},
                              .config = config_to_json(config),
                              .model_config = huggingface_config(config.model),
                              .parameters = testing::new_tensors(means),
                              .moments = {},
                              .parameter_ends = {means.size()},
                              .moment_ends = {}},
                             watch));
  EXPECT_EQ(ckpt({"verify", at("mean")}).status, 0);
  EXPECT_THAT(ckpt({"show", at("mean")}).out,
              HasSubstr("none: a mean of checkpoints, which cannot be resumed"));
  EXPECT_EQ(Json::parse(ckpt({"show", at("mean"), "--json"}).out)["optimizer"], kNoOptimizer);
  // Only one of the two has moments.
  const Said moments = ckpt({"diff", at("b"), at("mean"), "--optimizer", "--top", "1"});
  EXPECT_THAT(moments.out,
              AllOf(HasSubstr("not compared: 55 more\n"), HasSubstr("; 56 not compared")));
  EXPECT_EQ(std::ranges::count(moments.out, '\n'), 5) << moments.out;
  EXPECT_EQ(ckpt({"reshard", at("mean"), "--files", "2", "-o", at("cut")}).status, 0);
  EXPECT_EQ(ckpt({"export", at("mean"), "-o", at("out")}).status, 0);
}

TEST_F(Ckpt, PruneKeepsTheLastGoodOne) {
  const std::string run = at("run");
  for (const std::int64_t step : {10, 20, 30, 40}) save_run(run, small_config(), step, 1);
  const auto spoil = [&](std::int64_t step) {
    const auto file = checkpoint_folder(run, step) / "model-00001-of-00001.safetensors";
    std::string bytes = testing::read_bytes(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    testing::write_bytes(file, bytes);
  };
  spoil(40);
  spoil(30);
  const Said dry = ckpt({"prune", run, "--keep", "1", "--dry-run"});
  EXPECT_THAT(dry.out, AllOf(HasSubstr("steps 40, 30 are damaged, so step 20 is retained\n"),
                             HasSubstr("step-000010"),
                             HasSubstr("would remove 2 of 4 checkpoints, "), HasSubstr("KiB\n")));
  EXPECT_THAT(names_in(run), ElementsAre("checkpoints")) << "no lock was taken";
  ASSERT_EQ(ckpt({"prune", run, "--keep", "1"}).status, 0);
  EXPECT_THAT(names_in(run + "/checkpoints"), ElementsAre("step-000020", "step-000040"));
  const Said again = ckpt({"prune", run, "--keep", "1"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out,
            "step 40 is damaged, so step 20 is retained\nremoved 0 of 2 checkpoints, 0.0 KiB\n");
  EXPECT_EQ(Json::parse(ckpt({"prune", run, "--keep", "1", "--json"}).out)["damaged"],
            Json::array({40}));
  spoil(20);
  const Said none = ckpt({"prune", run, "--keep", "1"});
  EXPECT_EQ(none.status, 7);
  EXPECT_THAT(none.err, HasSubstr("none was removed"));
  EXPECT_THAT(names_in(run + "/checkpoints"), ElementsAre("step-000020", "step-000040"));
}

TEST_F(Ckpt, PruneFollowsTheRunsConfiguration) {
  const std::string run = at("run");
  for (const std::int64_t step : {10, 15, 20, 25, 30}) save_run(run, small_config(), step, 1);
  Config config = small_config();
  config.checkpoint.keep = 1;
  config.checkpoint.keep_every = 20;
  testing::write_bytes(run + "/config.toml", config_to_toml(config));
  const Said said = ckpt({"prune", run, "--json"});
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(Json::parse(said.out)["kept"], Json::array({20, 30}));
  EXPECT_THAT(names_in(run + "/checkpoints"), ElementsAre("step-000020", "step-000030"));
}

TEST_F(Ckpt, PruneLeavesARunThatTrainsAlone) {
  const std::string run = at("run");
  for (const std::int64_t step : {10, 20}) save_run(run, small_config(), step, 1);
  const Log log("");
  const auto lock = RunLock::acquire(run, log);
  ASSERT_OK(lock);
  EXPECT_EQ(ckpt({"prune", run, "--keep", "1"}).status, 4);
  EXPECT_EQ(ckpt({"prune", run, "--keep", "1", "--dry-run"}).status, 0);
  EXPECT_THAT(names_in(run + "/checkpoints"), ElementsAre("step-000010", "step-000020"));
}

TEST_F(Ckpt, ARunThatHasSavedNothingYetIsOne) {
  const std::string run = at("run");
  const Log log("");
  {
    const auto lock = RunLock::acquire(run, log);
    ASSERT_OK(lock);
    EXPECT_EQ(ckpt({"prune", run}).status, 4) << "it trains";
    EXPECT_EQ(ckpt({"list", run}).out, "no checkpoints\n");
  }
  EXPECT_EQ(ckpt({"prune", run}).out, "removed 0 of 0 checkpoints, 0.0 KiB\n");
}

TEST_F(Ckpt, MistakesHaveTheirStatus) {
  save_run(at("run"), small_config(), 10, 1);
  testing::write_bytes(at("words"), "# Words\n\nThis is a text and no weights.\n");
  std::filesystem::create_directory(at("empty"));
  const auto expect = [&](int status, const std::vector<std::string>& words, const char* text) {
    const Said said = ckpt(words);
    EXPECT_EQ(said.status, status) << words[0] << ' ' << said.err;
    EXPECT_THAT(said.err, HasSubstr(text));
  };
  expect(2, {"export", at("run")}, "needs --output");
  expect(2, {"export", at("run"), "-o", at("x"), "--dtype", "fp8"}, "fp32, fp16 or bf16");
  expect(2, {"export", at("run"), "-o", at("x"), "--one-file", "--max-file", "1GB"},
         "exclude each other");
  expect(2, {"export", at("run"), "-o", at("x"), "--max-file", "many"}, "must be a size");
  expect(2, {"reshard", at("run"), "-o", at("x")}, "needs --files");
  expect(2, {"reshard", at("run"), "-o", at("x"), "--files", "0"}, "whole number");
  expect(2, {"diff", at("run")}, "needs B");
  expect(3, {"export", at("none"), "-o", at("x")}, "no such file");
  expect(3, {"export", at("empty"), "-o", at("x")}, "has no checkpoint");
  expect(3, {"export", at("run"), "-o", at("empty")}, "already exists");
  expect(3, {"export", at("run"), "-o", at("x"), "--tokenizer", at("empty")}, "no tokenizer");
  expect(2, {"reshard", at("run"), "-o", at("x"), "--files", "29"}, "use --files 28 at most");
  expect(2, {"export", at("run"), "-o", at("x.safetensors")}, "add --one-file");
  for (const std::string& place : {at("empty"), at("words"), folder_.path().string()}) {
    expect(3, {"prune", place}, "not a run folder");
    expect(3, {"list", place}, "not a run folder");
  }
  expect(7, {"show", at("words")}, "words is not a safetensors file");
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("empty", "run", "words"));
}

}  // namespace
}  // namespace motley
