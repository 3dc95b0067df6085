#include "run_config/config_changes.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "run_config/config_value.h"
#include "run_config/optimizers.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ResultChanges, NameWhatTheNumbersDependOn) {
  const Config from;
  Config to;
  to.train.seed = 7;
  to.train.lr = 0.01;
  to.train.global_batch = 64;
  to.train.micro_batch = 4;
  to.model.dropout = 0.1;
  to.data.holdout = 0.25;
  to.compression.activations = "int8";
  const auto changes = result_changes(from, to);
  EXPECT_THAT(
      changes,
      ElementsAre(ConfigChange{"model.dropout", "0.0", "0.1"},
                  ConfigChange{"data.holdout", "0.1", "0.25"},
                  ConfigChange{"train.global_batch", "32", "64"},
                  ConfigChange{"train.micro_batch", "0", "4"},
                  ConfigChange{"train.lr", "0.0003", "0.01"}, ConfigChange{"train.seed", "1", "7"},
                  ConfigChange{"compression.activations", "\"none\"", "\"int8\""}));
}

TEST(ResultChanges, NameHowSamplesAreSeen) {
  Config from;
  Config to;
  to.data.mean = {0.5};
  to.data.std = {0.25};
  to.data.crop_pixels = 2;
  EXPECT_THAT(result_changes(from, to), ElementsAre(ConfigChange{"data.mean", "[]", "[0.5]"},
                                                    ConfigChange{"data.std", "[]", "[0.25]"}));
  to = Config();
  to.data.augment = {"crop"};
  to.data.crop_pixels = 2;
  EXPECT_THAT(result_changes(from, to),
              ElementsAre(ConfigChange{"data.augment", "[]", "[\"crop\"]"},
                          ConfigChange{"data.crop_pixels", "4", "2"}));
}

TEST(ResultChanges, NameGroupsAndTheAverage) {
  Config to;
  to.train.groups = {"*.bias: lr=0.5"};
  to.train.ema = 0.5;
  to.train.muon_momentum = 0.5;  // not used by adamw
  EXPECT_THAT(result_changes(Config(), to),
              ElementsAre(ConfigChange{"train.groups", "[]", "[\"*.bias: lr=0.5\"]"},
                          ConfigChange{"train.ema", "0.0", "0.5"}));
}

TEST(ResultChanges, LeaveOutWhatTheNumbersDoNotDependOn) {
  Config to;
  to.model.init_from = "weights";
  to.data.path = "moved/text";
  to.data.suffixes = {".txt"};
  to.data.crop_pixels = 2;  // without "crop" in augment
  to.train.eval_every = 10;
  to.data.skip_damaged = true;  // what is left out is compared by content
  to.train.eval_batches = 2;
  to.train.max_skipped = 3;
  to.train.momentum = 0.5;  // not used by adamw
  to.parallel.schedule = "gpipe";
  to.parallel.cuts = {3};
  to.comm.transport = "tcp";
  to.checkpoint = {.every = 7, .every_minutes = 2.5, .keep = 9, .keep_every = 70};
  to.run = {.dir = "elsewhere", .threads = Config().run.threads, .trace_steps = 9};
  EXPECT_THAT(result_changes(Config(), to), IsEmpty());
}

// The data's identity tells whether the held-out samples are the same.
TEST(ResultChanges, NameAHeldOutSetOnlyWhereItComesOrGoes) {
  Config from;
  from.data.holdout_path = "val.txt";
  Config to = from;
  to.data.holdout_path = "moved/val.txt";
  to.data.holdout = 0.25;  // unused beside it
  EXPECT_THAT(result_changes(from, to), IsEmpty());
  to = Config();
  EXPECT_THAT(result_changes(from, to),
              ElementsAre(ConfigChange{"data.holdout_path", "\"val.txt\"", "\"\""}));
}

TEST(ResultChanges, NameTheWeightsOfTheLoss) {
  Config to;
  to.train.label_smoothing = 0.1;
  to.train.class_weights = {1, 2};
  EXPECT_THAT(result_changes(Config(), to),
              ElementsAre(ConfigChange{"train.label_smoothing", "0.0", "0.1"},
                          ConfigChange{"train.class_weights", "[]", "[1.0, 2.0]"}));
}

// Of the keys that only some optimizers read, those of the run's optimizer count.
TEST(ResultChanges, CountAllSettingsOfTheRunsOptimizer) {
  for (const OptimizerFacts& runs : optimizers()) {
    for (const OptimizerFacts& each : optimizers()) {
      for (const std::string_view key : each.keys) {
        Config from;
        from.train.optimizer = runs.name;
        const ConfigEntry* entry = find_entry(key);
        ASSERT_NE(entry, nullptr) << key;
        Config to = from;
        ASSERT_TRUE(set_value(to, *entry, Json(0.25), "")) << key;
        const bool is_read = std::ranges::find(runs.keys, key) != runs.keys.end();
        EXPECT_EQ(result_changes(from, to).size(), is_read ? 1U : 0U) << runs.name << ", " << key;
      }
    }
  }
}

TEST(ResultChanges, CountTheThreadsSinceLibrariesAddUpByThem) {
  Config from;
  from.run.threads = 1;
  Config to;
  to.run.threads = 2;
  EXPECT_THAT(result_changes(from, to), ElementsAre(ConfigChange{"run.threads", "1", "2"}));
}

TEST(ResultChanges, CountTheLastStepOnlyWhereTheLearningRateDependsOnIt) {
  Config from;
  Config to;
  to.train.steps = 2000;
  EXPECT_THAT(result_changes(from, to), ElementsAre(ConfigChange{"train.steps", "1000", "2000"}));
  to.train.epochs = 2;
  to.train.early_stopping = 5;
  to.train.decay_steps = 5;
  EXPECT_EQ(result_changes(from, to).size(), 1U) << "cosine has no decay_steps";
  to.train.schedule_steps = 1000;
  EXPECT_THAT(result_changes(from, to), IsEmpty()) << "it ends where it did";
  to.train.schedule_steps = 1500;
  EXPECT_THAT(result_changes(from, to),
              ElementsAre(ConfigChange{"train.steps", "1000", "2000"},
                          ConfigChange{"train.schedule_steps", "0", "1500"}));
  from.train.schedule = to.train.schedule = "constant";
  EXPECT_THAT(result_changes(from, to), IsEmpty());
}

}  // namespace
}  // namespace motley
