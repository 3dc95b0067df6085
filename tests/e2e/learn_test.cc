// A plan that has learned from a run predicts that job better than one made from a wrong profile.
#include <cmath>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

// Large enough that computing outweighs what no profile knows of.
const std::vector<std::string> kWider = {"--set", "model.width=128", "--set", "train.steps=12"};

std::vector<std::string> words(std::vector<std::string> first,
                               const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// The profile of a run, as if its devices were twice as fast.
std::string falsified(std::string profile_text) {
  Json profile = Json::parse(profile_text);
  for (Json& device : profile["devices"]) {
    for (auto& [signature, samples] : device["layers"].items()) {
      for (Json& sample : samples) {
        for (const char* key : {"forward_s", "backward_s", "backward_input_s", "backward_weight_s"}) {
          sample[key] = sample[key].get<double>() / 2;
        }
      }
    }
  }
  return profile.dump();
}

class Learn : public testing::Test {
 protected:
  Json json_of(const std::string& file) {
    return Json::parse(read_text(std::filesystem::path(job_.run_dir("run")) / file));
  }

  // The predicted step of a plan with those options, on one stage.
  double predicted_s(const std::vector<std::string>& options) {
    const Outcome outcome = motley(
        words(words({"plan", job_.folder().path() / "job.toml", "--json"}, kWider), options));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? Json::parse(outcome.out).at("predicted_step_s").get<double>() : 0;
  }

  SmallJob job_;
};

TEST_F(Learn, ThePredictionComesCloserToWhatWasMeasured) {
  ASSERT_EQ(job_.train("run", kWider).status, 0);
  const std::string profile = job_.folder().write(
      "wrong.json",
      falsified(read_text(std::filesystem::path(job_.run_dir("run")) / "profile.json")));
  const double measured_s = json_of("report.json").at("step_s").at("measured").get<double>();
  const double unlearned_s = predicted_s({"--profile", profile});
  const double learned_s = predicted_s({"--profile", profile, "--learn", job_.run_dir("run")});
  EXPECT_LT(std::abs(learned_s - measured_s), 0.25 * measured_s);
  EXPECT_LT(std::abs(learned_s - measured_s), std::abs(unlearned_s - measured_s));
}

TEST_F(Learn, AReportComparesEachStage) {
  ASSERT_EQ(job_.train("run", words(kWider, {"--stages", "2"})).status, 0);
  const Json report = json_of("report.json");
  ASSERT_EQ(report.at("ranks").size(), 2U);
  for (const Json& rank : report.at("ranks")) {
    EXPECT_GT(rank.at("compute_s").at("measured").get<double>(), 0);
    EXPECT_GT(rank.at("memory_bytes").at("measured").get<double>(), 1e6);
    EXPECT_EQ(rank.at("sent_bytes").at("measured"), rank.at("sent_bytes").at("predicted"));
  }
  const Outcome outcome = motley({"report", job_.run_dir("run")});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("stage 1"), std::string::npos) << outcome.out;
}

TEST_F(Learn, ARunThatIsNotThereTeachesNothing) {
  EXPECT_EQ(motley({"report", job_.run_dir("none")}).status, 3);
}

}  // namespace
}  // namespace motley::test
