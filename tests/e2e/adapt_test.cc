// A run that was planned from a wrong profile finds a better plan from its measured steps.
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Enough steps that a switch of plans is worth it; the tests stop earlier.
const std::vector<std::string> kLong = {"model.layers=6", "model.width=96", "model.context=32",
                                        "train.steps=1000000"};

// The profile with faster machines than measured: "box" by a factor of 16, "desk" by 4. Both start
// from the layer times of "box", so that other work on this host during a measurement cannot make
// one seem faster than the other, and "desk" is changed too, because the measurement may have been
// slowed down as a whole: a machine that mostly waits is never assumed to be faster than its
// profile.
std::string flattered(std::string profile_text) {
  Json profile = Json::parse(profile_text);
  Json& devices = profile["devices"];
  const auto box =
      std::ranges::find_if(devices, [](const Json& each) { return each["machine"] == "box"; });
  const Json layers = (*box)["layers"];
  for (Json& device : devices) {
    const double faster = device["machine"] == "box" ? 16 : 4;
    device["layers"] = layers;
    for (auto& [signature, samples] : device["layers"].items()) {
      for (Json& sample : samples) {
        for (auto& [key, value] : sample.items()) {
          if (key.ends_with("_s")) value = value.get<double>() / faster;
        }
      }
    }
  }
  return profile.dump();
}

class Adapt : public testing::Test {
 protected:
  Adapt() {
    job_words_ = SmallJob::measured_with(kLong, kDeskAndBox);
    job_.folder().write("flattered.json", flattered(read_text(job_words_.back())));
    job_words_.back() = (job_.folder() / "flattered.json").string();
    job_.folder().write("cluster.toml", kDeskAndBox);
  }

  std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> all = job_words_;
    all.insert(all.end(), {"--cluster", (job_.folder() / "cluster.toml").string()});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  [[nodiscard]] std::string text_of(const std::string& run, const std::string& file) const {
    return read_text(std::filesystem::path(job_.run_dir(run)) / file);
  }

  [[nodiscard]] std::string plan_hash(const std::string& run) const {
    return Json::parse(text_of(run, "plan.json")).at("hash").get<std::string>();
  }

  [[nodiscard]] std::int64_t steps_done(const std::string& run) const {
    return std::ranges::count(text_of(run, "metrics.jsonl"), '\n');
  }

  // Trains until `said` is in the log and some more steps are done, then sends Ctrl-C; returns the
  // outcome. Also ends the run if `said` does not come.
  Outcome train_until(const std::string& said, const std::vector<std::string>& more) {
    RunningMotley run(job_.train_words("run", words(more)));
    const std::filesystem::path log = std::filesystem::path(job_.run_dir("run")) / "log/motley.log";
    const bool is_said = eventually([&] {
      return std::filesystem::exists(log) && read_text(log).find(said) != std::string::npos;
    });
    EXPECT_TRUE(is_said) << said;
    const std::int64_t then = steps_done("run");
    EXPECT_TRUE(eventually([&] { return steps_done("run") >= then + 5; }));
    ::kill(run.pid(), SIGINT);
    return run.wait();
  }

  SmallJob job_;
  std::vector<std::string> job_words_;
};

TEST_F(Adapt, MovesLayersOffAMachineThatIsSlowerThanItsProfile) {
  const Outcome planned = job_.train("planned", words({"--stages", "2", "--stop-after", "1"}));
  ASSERT_EQ(planned.status, 0) << planned.err;
  const Outcome outcome = train_until("a new plan: ", {"--stages", "2", "--adapt"});
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  ASSERT_THAT(outcome.err, HasSubstr("predicted from measured steps: "));
  EXPECT_NE(plan_hash("run"), plan_hash("planned"));
  // Each step was executed once, and the bits are those of a run that keeps its plan.
  const auto steps = static_cast<int>(steps_done("run"));
  const Outcome still = job_.train("still", words({"--plan", job_.run_dir("planned") + "/plan.json",
                                                   "--stop-after", std::to_string(steps)}));
  ASSERT_EQ(still.status, 0) << still.err;
  EXPECT_THAT(still.err, Not(HasSubstr("predicted from measured steps")));
  EXPECT_EQ(job_.parameter_hash("run", steps), job_.parameter_hash("still", steps));
}

TEST_F(Adapt, OtherwiseSaysWhatItWouldBring) {
  const Outcome outcome = train_until("predicted from measured steps: ", {"--stages", "2"});
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("with --resume --adapt"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("a new plan: ")));
  EXPECT_THAT(text_of("run", "events.jsonl"), HasSubstr("predicted from measured steps: "));
}

TEST_F(Adapt, RefusesAGivenPlanAndASimulatedRun) {
  EXPECT_EQ(job_.train("run", {"--plan", "plan.json", "--adapt"}).status, 2);
  const std::string cluster = job_.folder().write(
      "virtual.toml", "[[machine]]\nname = \"gpu\"\ndevice_model = \"rtx-3060\"\n");
  const Outcome outcome = job_.train("run", {"--cluster", cluster, "--adapt"});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--adapt needs devices that compute"));
}

}  // namespace
}  // namespace motley::test
