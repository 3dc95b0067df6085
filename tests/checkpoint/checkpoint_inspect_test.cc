#include <fmt/format.h>

#include "base/json.h"
#include "checkpoint/inspect.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TestRun;
using testing::write_bytes;

TEST(CheckpointInspect, ListsEachCheckpointOnOneLine) {
  const TestRun run;
  ASSERT_OK(run.save(10));
  ASSERT_OK(run.save(20));
  write_bytes(checkpoint_folder(run.dir(), 10) / "manifest.json", "{}");
  const auto checkpoints = list_checkpoints(run.dir());
  const std::string text = format_checkpoint_list(checkpoints);
  EXPECT_THAT(text, ::testing::ContainsRegex(" 10 +damaged +damaged +/.*step-000010\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 20 +160 +[0-9.]+ KiB +/.*step-000020\n"));

  const Json json = checkpoint_list_to_json(checkpoints);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_TRUE(json[0].contains("error"));
  EXPECT_EQ(json[1]["step"], 20);
  EXPECT_EQ(json[1]["tokens"], 10240);
  EXPECT_EQ(format_checkpoint_list({}), "no checkpoints\n");
}

TEST(CheckpointInspect, ShowsOneCheckpoint) {
  const TestRun run;
  const auto folder = run.save(20, 2);
  ASSERT_OK(folder);
  const auto text = format_checkpoint(*folder);
  ASSERT_OK(text);
  EXPECT_THAT(*text,
              AllOf(HasSubstr("20 (19 optimizer updates)"), HasSubstr("gpt2, hash aa11"),
                    HasSubstr("160 samples, 10240 tokens, seed -7"), HasSubstr("11 in 4 tensors"),
                    HasSubstr("adamw"), HasSubstr(read_manifest(*folder)->parameter_hash),
                    HasSubstr("  optimizer-00002-of-00002.safetensors\n")));
  const auto json = checkpoint_to_json(*folder);
  ASSERT_OK(json);
  EXPECT_EQ((*json)["parameters"], 11);
  EXPECT_EQ((*json)["files"].size(), 6U);
  EXPECT_EQ((*json)["parameter_hash"], read_manifest(*folder)->parameter_hash);
}

TEST(CheckpointInspect, HasNoTokensWhereASampleCountsAsOne) {
  const TestRun run;
  const auto shards = run.write(20, 1, 1);
  ASSERT_OK(shards);
  CheckpointState state = TestRun::state(20);
  state.tokens = state.samples;
  const auto folder =
      commit_checkpoint(run.dir(), testing::kLaunch, state, *shards,
                        Json{{"train", Json::object()}}, Json{{"model_type", "package"}});
  ASSERT_OK(folder);
  const auto text = format_checkpoint(*folder);
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("160 samples, seed -7"));
}

TEST(CheckpointInspect, VerifiesOrSaysWhatIsWrong) {
  const TestRun run;
  const auto folder = run.save(20, 2);
  ASSERT_OK(folder);
  const auto text = format_verification(*folder);
  ASSERT_OK(text);
  EXPECT_THAT(*text, AllOf(HasSubstr("intact"), HasSubstr("in 6 files")));
  EXPECT_EQ((*verification_to_json(*folder))["whole"], true);
  write_bytes(*folder / "config.json", "{}");
  EXPECT_CORRUPT(format_verification(*folder), "config.json");
  EXPECT_CORRUPT(verification_to_json(*folder), "config.json");
}

}  // namespace
}  // namespace motley
