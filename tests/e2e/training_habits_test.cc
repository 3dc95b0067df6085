// Training by epochs, with the best checkpoint, early stopping, and a run that is extended before
// its learning rate decays.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/overfitting_job.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

class TrainingHabits : public testing::Test {
 protected:
  TrainingHabits() {
    data_ = folder_.write("data.txt", random_letters());
    config_ = folder_.write("job.toml", kOverfitting);
  }

  [[nodiscard]] Outcome train(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"train",      config_, "--run",
                                      run_dir(run), "--set", "data.path=" + data_};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words);
  }

  [[nodiscard]] std::string run_dir(const std::string& run) const {
    return (folder_ / run).string();
  }

  [[nodiscard]] std::vector<std::string> checkpoints(const std::string& run) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / run / "checkpoints")) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  [[nodiscard]] Json report(const std::string& run) const {
    return Json::parse(read_text(folder_ / run / "report.json"));
  }

  [[nodiscard]] std::string hash_of(const fs::path& checkpoint) const {
    return Json::parse(read_text(checkpoint / "manifest.json"))
        .at("parameter_hash")
        .get<std::string>();
  }

  TemporaryFolder folder_;
  std::string data_;
  std::string config_;
};

std::string step_folder(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(6 - digits.size(), '0') + digits;
}

TEST_F(TrainingHabits, KeepTheBestStepOfARunThatOverfitsAndStopEarly) {
  const Outcome ended = train("run", {"--stages", "2"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("stopped early: 3 evaluations in a row without a lower"));
  const Json report = this->report("run");
  const auto best = report.at("best").at("step").get<std::int64_t>();
  const auto last = report.at("last_step").get<std::int64_t>();
  EXPECT_EQ(last, best + 15);
  EXPECT_LT(last, 400);
  EXPECT_THAT(report.at("stopped_early").get<std::string>(), HasSubstr("3 evaluations"));
  EXPECT_THAT(checkpoints("run"), ElementsAre(step_folder(best), step_folder(last)));

  const Outcome list = motley({"ckpt", "list", run_dir("run")});
  EXPECT_THAT(list.out, HasSubstr("best: held-out loss"));
  const Outcome shown = motley({"ckpt", "show", run_dir("run") + "/checkpoints/best", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(Json::parse(shown.out).at("step"), best);
  const std::string out = run_dir("best.safetensors");
  const Outcome exported =
      motley({"ckpt", "export", run_dir("run") + "/checkpoints/best", "--one-file", "-o", out});
  ASSERT_EQ(exported.status, 0) << exported.err;
  const Outcome same =
      motley({"ckpt", "diff", out, run_dir("run") + "/checkpoints/" + step_folder(best), "--json"});
  EXPECT_EQ(Json::parse(same.out).at("equal"), true);

  const Outcome again = train("run", {"--stages", "2", "--resume"});
  EXPECT_EQ(again.status, 3);
  EXPECT_THAT(again.err, HasSubstr("the run has stopped early"));
  EXPECT_THAT(again.err, HasSubstr("--set train.early_stopping=0"));
  const Outcome further =
      train("run", {"--stages", "2", "--resume", "--set", "train.early_stopping=0", "--set",
                    "train.steps=" + std::to_string(last + 5)});
  ASSERT_EQ(further.status, 0) << further.err;
  EXPECT_THAT(checkpoints("run"), ElementsAre(step_folder(best), step_folder(last + 5)));
}

// Interrupted between two evaluations, and on other numbers of stages.
TEST_F(TrainingHabits, StopAfterTheSameStepOnAnyPlanAndAfterAResume) {
  const Outcome straight = train("straight", {"--stages", "1"});
  ASSERT_EQ(straight.status, 0) << straight.err;
  const Json report = this->report("straight");
  const auto last = report.at("last_step").get<std::int64_t>();
  const auto best = report.at("best").at("step").get<std::int64_t>();
  ASSERT_EQ(train("parts", {"--stages", "2", "--stop-after", std::to_string(best + 8)}).status, 0);
  const Outcome resumed = train("parts", {"--stages", "1", "--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(this->report("parts").at("last_step"), last);
  EXPECT_EQ(this->report("parts").at("best").at("step"), best);
  EXPECT_THAT(checkpoints("parts"), ElementsAre(step_folder(best), step_folder(last)));
  for (const std::int64_t step : {best, last}) {
    EXPECT_EQ(hash_of(folder_ / "parts/checkpoints" / step_folder(step)),
              hash_of(folder_ / "straight/checkpoints" / step_folder(step)))
        << step;
  }
}

TEST_F(TrainingHabits, CountEpochs) {
  // 600 bytes, 30 % held out, windows of 8 bytes and the next one.
  const Outcome planned = train("run", {"--set", "train.epochs=2", "--dry-run", "--json"});
  ASSERT_EQ(planned.status, 0) << planned.err;
  const auto steps = Json::parse(planned.out).at("last_step").get<std::int64_t>();
  EXPECT_THAT(planned.err, HasSubstr("2 epochs of "));
  EXPECT_THAT(planned.err, HasSubstr(" = " + std::to_string(steps) + " steps"));
  const Outcome ended =
      train("run", {"--set", "train.epochs=2", "--set", "train.early_stopping=0"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(report("run").at("last_step"), steps);
  EXPECT_THAT(read_text(folder_ / "run/config.toml"),
              HasSubstr("steps = " + std::to_string(steps) + "\nepochs = 2"));
  const Outcome over = train("run", {"--set", "train.epochs=2", "--resume"});
  EXPECT_EQ(over.status, 3);
  EXPECT_THAT(over.err, HasSubstr("the run has already done"));
  const Outcome more =
      train("run", {"--set", "train.epochs=3", "--set", "train.early_stopping=0", "--resume"});
  ASSERT_EQ(more.status, 0) << more.err;
  EXPECT_GT(report("run").at("last_step").get<std::int64_t>(), steps);
  const Outcome without_data =
      motley({"plan", config_, "--set", "train.epochs=2", "--set", "data.path=absent"});
  EXPECT_EQ(without_data.status, 0) << without_data.err;
}

std::vector<std::string> wsd(const std::vector<std::string>& more) {
  std::vector<std::string> words = SmallJob::measured_with({});
  words.insert(words.end(),
               {"--stages", "2", "--set", "train.schedule=wsd", "--set", "checkpoint.every=30"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ExtendedRun, OfSixtyStepsGoesOnToAHundredAndTwentyWithoutAJump) {
  const SmallJob job;
  ASSERT_EQ(job.train("long", wsd({"--set", "train.steps=120"})).status, 0);
  const std::vector<std::string> sixty = {"--set", "train.steps=60", "--set",
                                          "train.warmup_steps=5"};
  ASSERT_EQ(job.train("short", wsd(sixty)).status, 0);
  // Retained beside the newest one.
  const fs::path stable = job.run_dir("short") + "/checkpoints/step-000054";
  ASSERT_TRUE(fs::exists(stable));
  fs::create_directories(job.run_dir("extended") + "/checkpoints");
  fs::copy(stable, job.run_dir("extended") + "/checkpoints/step-000054",
           fs::copy_options::recursive);
  const Outcome extended = job.train("extended", wsd({"--set", "train.steps=120", "--resume"}));
  ASSERT_EQ(extended.status, 0) << extended.err;
  EXPECT_EQ(extended.err.find("the learning rate"), std::string::npos) << extended.err;
  EXPECT_EQ(job.parameter_hash("extended", 120), job.parameter_hash("long", 120));

  const Outcome refused = job.train("short", wsd({"--set", "train.steps=120", "--resume"}));
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, HasSubstr("the learning rate 0.0005 (step 60) -> 0.003 (step 61)"));
  EXPECT_THAT(refused.err, HasSubstr("from the checkpoint of step 54"));
}

TEST(ExtendedRun, ResumesInEachPhase) {
  const SmallJob job;
  const std::vector<std::string> all = {"--set", "train.steps=40", "--set", "train.decay_steps=10"};
  ASSERT_EQ(job.train("straight", wsd(all)).status, 0);
  for (const char* step : {"3", "20", "35"}) {
    const std::string run = std::string("from-") + step;
    std::vector<std::string> first = all;
    first.insert(first.end(), {"--stop-after", step});
    ASSERT_EQ(job.train(run, wsd(first)).status, 0);
    std::vector<std::string> rest = all;
    rest.emplace_back("--resume");
    const Outcome outcome = job.train(run, wsd(rest));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(metric_column(job.run_dir(run), "lr"), metric_column(job.run_dir("straight"), "lr"));
    EXPECT_EQ(job.parameter_hash(run, 40), job.parameter_hash("straight", 40)) << step;
  }
}

}  // namespace
}  // namespace motley::test
