// A plan that has learned from a run predicts the measured times of that job.
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

// Large enough that computing outweighs the costs that the profile does not contain.
const std::vector<std::string> kWider = {"--set", "model.width=128", "--set", "train.steps=12"};

std::vector<std::string> words(std::vector<std::string> first,
                               const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

constexpr double kSlower = 2;

// The report of a run, changed so that its devices computed kSlower times as long as predicted.
// Real measurements depend on the load of the computer; bench/plan_truth compares those.
std::string slower(const std::string& report_text) {
  Json report = Json::parse(report_text);
  for (Json& rank : report["ranks"]) {
    rank["compute_s"]["measured"] = kSlower * rank["compute_s"]["predicted"].get<double>();
  }
  return report.dump();
}

class Learn : public testing::Test {
 protected:
  Json json_of(const std::string& file) {
    return Json::parse(read_text(std::filesystem::path(job_.run_dir("run")) / file));
  }

  // The predicted step time of a plan with these options, on one stage.
  double predicted_s(const std::vector<std::string>& options) {
    const Outcome outcome = motley(
        words(words({"plan", job_.folder().path() / "job.toml", "--json"}, kWider), options));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? Json::parse(outcome.out).at("predicted_step_s").get<double>() : 0;
  }

  SmallJob job_;
};

TEST_F(Learn, ThePredictionFollowsWhatWasMeasured) {
  ASSERT_EQ(job_.train("run", words(kWider, {"--stages", "1"})).status, 0);
  const std::string report = slower(read_text(job_.folder() / "run" / "report.json"));
  job_.folder().write("run/report.json", report);
  const std::string profile = job_.run_dir("run") + "/profile.json";
  const double unlearned_s = predicted_s({"--profile", profile});
  const double learned_s = predicted_s({"--profile", profile, "--learn", job_.run_dir("run")});
  EXPECT_NEAR(learned_s / unlearned_s, kSlower, 0.1);
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
