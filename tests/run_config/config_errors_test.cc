// Error messages for invalid configurations.
#include <limits>

#include <gmock/gmock.h>

#include "base/json.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

using testing::HasSubstr;

Error error_of(std::string_view toml,
               const Overrides& overrides = {},
               const std::map<std::string, std::string>& environment = {}) {
  const auto result = resolve_config(toml, "gpt.toml", environment, overrides);
  EXPECT_FALSE(result.ok()) << "accepted: " << toml;
  const Error error = result.ok() ? Error{} : result.error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  return error;
}

TEST(ConfigErrors, NameAMisspeltKeyAndTheRightOne) {
  const Error error = error_of("[train]\nleraning_rate = 1");
  EXPECT_EQ(error.what, "unknown key train.leraning_rate, gpt.toml:2:17");
  EXPECT_EQ(error.remedy, "did you mean train.lr?");
}

TEST(ConfigErrors, NameForgottenQuotes) {
  EXPECT_EQ(error_of("[train]\noptimizer = sgd  # plain\nlr = 1").remedy,
            "quote text: optimizer = \"sgd\"");
  EXPECT_EQ(error_of("[data]\npath = /data/text.txt").remedy,
            "quote text: path = \"/data/text.txt\"");
  EXPECT_EQ(error_of("[model]\ntied = True").remedy, "write tied = true");
  EXPECT_EQ(error_of("[train]\nlr = 1e\n").remedy, "correct this line");
  EXPECT_EQ(error_of("[train]\nlr = ").remedy, "correct this line");
  EXPECT_EQ(error_of("[train]\nname = \"a").remedy, "correct this line");
  EXPECT_EQ(error_of("[train]\nlr # a = b").remedy, "correct this line");
}

// The TOML parser only asserts these conditions.
TEST(ConfigErrors, NameSectionsAndValuesThatAreMissing) {
  for (const char* text : {"[[=]]", "a = [}", "a = [1,}", "[train]\na = [1, # one\n }"}) {
    EXPECT_EQ(error_of(text).cause, "a name or a value is missing") << text;
  }
  EXPECT_EQ(error_of("[train]\na = [1, # one\n }\n[data]").what, "bad TOML, gpt.toml:3:2");
  const auto nested =
      resolve_config("[parallel]\ncuts = [\n  1, # one\n 2\n]\n[ train ]\n", "g.toml", {}, {});
  EXPECT_TRUE(nested.ok()) << describe(nested.error());
}

TEST(ConfigErrors, FindAKeyInAnotherSection) {
  EXPECT_EQ(error_of("[model]\nsteps = 1").remedy, "did you mean train.steps?");
  EXPECT_EQ(error_of("batch_size = 1").remedy, "did you mean train.global_batch?");
}

TEST(ConfigErrors, PreferAKeyOfTheSameSection) {
  EXPECT_EQ(error_of("[parallel]\nscheduel = 'auto'").remedy, "did you mean parallel.schedule?");
}

TEST(ConfigErrors, NameAMisspeltSection) {
  const Error error = error_of("[trian]\nlr = 1");
  EXPECT_EQ(error.what, "unknown section or key trian, gpt.toml:1:1");
  EXPECT_EQ(error.remedy, "did you mean [train]?");
}

TEST(ConfigErrors, SuggestNothingForANonsenseKey) {
  EXPECT_EQ(error_of("[train]\nqqqqqqqqqqqq = 1").remedy, "`motley config` lists every key");
}

TEST(ConfigErrors, NameTheWantedAndTheFoundType) {
  const Error error = error_of("[train]\nlr = \"x\"");
  EXPECT_EQ(error.what, "train.lr must be a number, gpt.toml:2:6");
  EXPECT_EQ(error.cause, "it is a string");
}

TEST(ConfigErrors, RefuseEveryOtherType) {
  EXPECT_EQ(error_of("[train]\nsteps = 1.5").what, "train.steps must be an integer, gpt.toml:2:9");
  EXPECT_THAT(error_of("[model]\ntied = 1").what, HasSubstr("must be a boolean"));
  EXPECT_THAT(error_of("[model]\nkind = 1").what, HasSubstr("must be a string"));
  EXPECT_THAT(error_of("[parallel]\ncuts = 1").what, HasSubstr("must be a list of integers"));
  EXPECT_THAT(error_of("[parallel]\ncuts = ['a']").what, HasSubstr("parallel.cuts[0] must be"));
  EXPECT_THAT(error_of("[data]\nsuffixes = ['.c', 2]").what, HasSubstr("data.suffixes[1] must be"));
  EXPECT_THAT(error_of("[data]\nmean = 1").what, HasSubstr("must be a list of numbers"));
  EXPECT_THAT(error_of("[data]\nmean = [0.5, 'a']").what,
              HasSubstr("data.mean[1] must be a number"));
  EXPECT_THAT(error_of("train = 5").what, HasSubstr("train must be a section"));
  EXPECT_THAT(error_of("[[train]]\nlr = 1").what, HasSubstr("train must be a section"));
}

TEST(ConfigErrors, ListTheChoices) {
  const Error error = error_of("[train]\nschedule = 'step'");
  EXPECT_THAT(
      error.what,
      HasSubstr("train.schedule must be one of cosine, linear, constant, wsd, gpt.toml:2:12"));
  EXPECT_EQ(error.cause, "it is 'step'");
}

TEST(ConfigErrors, ListTheChoicesOfAnItem) {
  const Error error = error_of("[data]\naugment = ['flip', 'turn']");
  EXPECT_THAT(
      error.what,
      HasSubstr(
          "data.augment[1] must be one of flip, crop, resized_crop, color, erase, gpt.toml:2:11"));
  EXPECT_EQ(error.cause, "it is 'turn'");
}

struct BadValue {
  const char* key;
  const char* value;
};

class OutOfRange : public testing::TestWithParam<BadValue> {};

TEST_P(OutOfRange, IsRefused) {
  const Error error = error_of("", {{GetParam().key, GetParam().value}});
  EXPECT_THAT(error.what, HasSubstr(std::string(GetParam().key) + " must be "));
  EXPECT_THAT(error.what, HasSubstr("--set"));
}

INSTANTIATE_TEST_SUITE_P(ConfigErrors,
                         OutOfRange,
                         testing::Values(BadValue{"model.layers", "0"},
                                         BadValue{"model.vocab", "1"},
                                         BadValue{"model.width", "-1"},
                                         BadValue{"model.width", "99999999999"},
                                         BadValue{"model.dropout", "1.0"},
                                         BadValue{"model.dropout", "-0.1"},
                                         BadValue{"data.holdout", "0.91"},
                                         BadValue{"data.crop_pixels", "0"},
                                         BadValue{"train.lr", "0"},
                                         BadValue{"train.lr", "nan"},
                                         BadValue{"train.lr", "inf"},
                                         BadValue{"train.steps", "0"},
                                         BadValue{"train.beta2", "1"},
                                         BadValue{"train.epsilon", "0"},
                                         BadValue{"train.seed", "-1"},
                                         BadValue{"comm.timeout_s", "0"},
                                         BadValue{"run.threads", "1025"},
                                         BadValue{"run.threads", "-1"},
                                         BadValue{"parallel.cuts", "0"}));

TEST(ConfigErrors, NameTheItemThatIsOutOfRange) {
  EXPECT_THAT(error_of("", {{"data.mean", "[0.5, nan]"}}).what, HasSubstr("data.mean[1] must be"));
  EXPECT_THAT(error_of("", {{"data.std", "[0.0]"}}).what, HasSubstr("data.std[0] must be"));
  EXPECT_THAT(error_of("", {{"data.std", "[1, -1]"}}).what, HasSubstr("data.std[1] must be"));
  EXPECT_THAT(error_of("", {{"parallel.cuts", "[0]"}}).what,
              HasSubstr("parallel.cuts[0] must be from 1"));
}

TEST(ConfigErrors, RefuseWhatIsNotOneValue) {
  EXPECT_THAT(error_of("", {{"train.lr", "abc"}}).cause, HasSubstr("'abc' is not one TOML value"));
  EXPECT_THAT(error_of("", {{"train.lr", ""}}).what,
              HasSubstr("train.lr must be a number, given by --set train.lr"));
  EXPECT_THAT(error_of("", {{"train.lr", "1\nextra = 2"}}).cause, HasSubstr("not one TOML value"));
}

TEST(ConfigErrors, RefuseTextThatIsNotPlain) {
  EXPECT_THAT(error_of("", {{"run.dir", "a\nb"}}).what, HasSubstr("one line of UTF-8 text"));
  EXPECT_THAT(error_of("", {{"run.dir", "\xff"}}).what, HasSubstr("one line of UTF-8 text"));
}

TEST(ConfigErrors, NameAMisspeltVariable) {
  const Error error = error_of("", {}, {{"MOTLEY_TRAIN_STESP", "5"}});
  EXPECT_EQ(error.what, "unknown key train.stesp, environment variable MOTLEY_TRAIN_STESP");
  EXPECT_EQ(error.remedy, "did you mean MOTLEY_TRAIN_STEPS?");
}

TEST(ConfigErrors, NameTheVariableOfABadValue) {
  EXPECT_THAT(error_of("", {}, {{"MOTLEY_TRAIN_LR", "x"}}).what,
              HasSubstr("train.lr must be a number, given by MOTLEY_TRAIN_LR"));
}

TEST(ConfigErrors, NameAMisspeltOverride) {
  EXPECT_EQ(error_of("", {{"train.lrr", "1"}}).what, "unknown key train.lrr, given by --set");
}

TEST(ConfigErrors, NameTheLineOfBadSyntax) {
  EXPECT_THAT(error_of("[train]\nlr = = 1").what, HasSubstr("gpt.toml:2:"));
}

TEST(ConfigConflicts, NameTheValueToChange) {
  const Error error = error_of("[train]\nglobal_batch = 10\nmicro_batch = 4");
  EXPECT_EQ(error.what, "train.micro_batch must divide train.global_batch, gpt.toml:3:15");
  EXPECT_EQ(error.cause, "10 is not a multiple of 4");
}

// The other key has its default, so it has no position.
TEST(ConfigConflicts, NameThePlaceOfTheOneThatWasSet) {
  EXPECT_EQ(error_of("[train]\nmin_lr = 1").what,
            "train.min_lr must be at most train.lr, gpt.toml:2:10");
}

TEST(ConfigConflicts, AreFoundBetweenOtherKeys) {
  EXPECT_THAT(error_of("[model]\nwidth = 10\nheads = 4").what,
              HasSubstr("model.heads must divide"));
  EXPECT_THAT(error_of("[train]\nsteps = 50\nwarmup_steps = 51").what,
              HasSubstr("train.warmup_steps must be at most"));
  EXPECT_THAT(error_of("[train]\nlr = 1e-3\nmin_lr = 1e-2").what, HasSubstr("train.min_lr"));
  EXPECT_THAT(error_of("[data]\nholdout = 0\n[train]\neval_every = 5").what,
              HasSubstr("train.eval_every needs held-out data"));
  EXPECT_THAT(error_of("[train]\nearly_stopping = 3").what,
              HasSubstr("train.early_stopping needs evaluations, gpt.toml:2:"));
  EXPECT_THAT(error_of("[checkpoint]\nkeep_best = true").what,
              HasSubstr("checkpoint.keep_best needs evaluations, gpt.toml:2:"));
  EXPECT_THAT(error_of("[checkpoint]\nkeep_best = true").remedy, HasSubstr("train.eval_every"));
  EXPECT_THAT(error_of("[train]\nschedule = 'wsd'\nsteps = 50\ndecay_steps = 50").what,
              HasSubstr("train.decay_steps must be at most"));
  EXPECT_THAT(error_of("[data]\nkind = 'synthetic'\nholdout_path = 'val'").what,
              HasSubstr("data.holdout_path needs data in files, gpt.toml:3:"));
  EXPECT_THAT(error_of("[parallel]\ncuts = [3, 3]").what,
              HasSubstr("parallel.cuts must be ascending"));
  EXPECT_THAT(error_of("[data]\nkind = 'images'\nmean = [0.5]\nstd = [1, 2]").what,
              HasSubstr("data.mean and data.std must be equally long, gpt.toml:4:"));
  EXPECT_THAT(error_of("[data]\nmean = [0.5]\nstd = [1]").what,
              HasSubstr("data.mean needs arrays or images"));
  EXPECT_THAT(error_of("[data]\nkind = 'synthetic'\naugment = ['flip']").what,
              HasSubstr("data.augment needs arrays or images, gpt.toml:3:"));
  EXPECT_THAT(error_of("[data]\nskip_damaged = true").what,
              HasSubstr("data.skip_damaged needs images, gpt.toml:2:"));
  EXPECT_THAT(error_of("[data]\ndtype = 'uint16'").what,
              HasSubstr("data.dtype needs tokens, gpt.toml:2:"));
  EXPECT_THAT(error_of("[train]\nschedule_steps = 20\nwarmup_steps = 30").what,
              HasSubstr("train.schedule_steps must be at least train.warmup_steps, gpt.toml:2:"));
}

TEST(ConfigConflicts, DoNotConcernAHeldOutSetOfItsOwn) {
  Config config;
  config.data.holdout = 0;
  config.train.eval_every = 5;
  EXPECT_FALSE(validate_config(config).ok());
  config.data.holdout_path = "val.txt";
  EXPECT_TRUE(validate_config(config).ok());
}

TEST(ConfigConflicts, AreFoundBetweenALossAndItsModel) {
  const std::string small = "[model]\nvocab = 3\n";
  EXPECT_THAT(error_of(small + "[train]\nclass_weights = [1, 2]").what,
              HasSubstr("train.class_weights must have a weight for each token, gpt.toml:4:"));
  EXPECT_THAT(error_of(small + "[train]\nclass_weights = [0, 0, 0]").what,
              HasSubstr("train.class_weights are all 0"));
  EXPECT_THAT(error_of(small + "[train]\nclass_weights = [0, 1e-60, 0]").what,
              HasSubstr("train.class_weights are all 0"));
  EXPECT_THAT(error_of(small + "[train]\nclass_weights = [1, -1, 1]").what,
              HasSubstr("train.class_weights"));
  EXPECT_THAT(error_of("[train]\nlabel_smoothing = 1").what, HasSubstr("train.label_smoothing"));
  const std::string package = "[model]\nkind = 'package'\npath = 'p'\n";
  const Error smoothed = error_of(package + "[train]\nlabel_smoothing = 0.1");
  EXPECT_THAT(smoothed.what, HasSubstr("train.label_smoothing does not apply to a package"));
  EXPECT_THAT(smoothed.remedy, HasSubstr("loss=nn.CrossEntropyLoss(label_smoothing=...)"));
  EXPECT_THAT(error_of(package + "[train]\nclass_weights = [1, 2]").remedy,
              HasSubstr("loss=nn.CrossEntropyLoss(weight=...)"));
  Config config;
  config.model.vocab = 3;
  config.train.class_weights = {0, 2, 0.5};
  config.train.label_smoothing = 0.1;
  EXPECT_TRUE(validate_config(config).ok());
}

TEST(ConfigConflicts, DoNotConcernKeysOfAnotherModel) {
  Config config;
  config.model.kind = "mlp";
  config.model.width = 10;
  config.model.heads = 4;
  EXPECT_TRUE(validate_config(config).ok());
  config.model.kind = "gpt2";
  EXPECT_FALSE(validate_config(config).ok());
}

TEST(ConfigJsonErrors, NameTheSource) {
  Json json = config_to_json(Config{});
  json["train"]["lr"] = "fast";
  const auto result = config_from_json(json, "message from the launcher");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().what, "train.lr must be a number, message from the launcher");
}

TEST(ConfigJsonErrors, RefuseDamage) {
  const auto refused = [](const auto& damage) {
    Json json = config_to_json(Config{});
    damage(json);
    return !config_from_json(json, "message").ok();
  };
  EXPECT_FALSE(refused([](Json&) {}));
  EXPECT_TRUE(refused([](Json& json) { json = Json::array(); }));
  EXPECT_TRUE(refused([](Json& json) { json["train"].erase("lr"); }));
  EXPECT_TRUE(refused([](Json& json) { json["train"]["more"] = 1; }));
  EXPECT_TRUE(refused([](Json& json) { json["train"] = nullptr; }));
  EXPECT_TRUE(refused([](Json& json) { json["model"]["heads"] = 7; }));
  EXPECT_TRUE(refused(
      [](Json& json) { json["train"]["seed"] = std::numeric_limits<std::uint64_t>::max(); }));
}

}  // namespace
}  // namespace motley
