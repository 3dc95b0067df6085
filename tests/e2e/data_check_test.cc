// `motley data check`, and what a dry run says about the data.
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

class DataCheck : public testing::Test {
 protected:
  // A text of that many lines.
  [[nodiscard]] std::string text(int lines) const {
    std::string all;
    for (int i = 0; i < lines; ++i) all += "line " + std::to_string(i) + " of a text\n";
    return job_.folder().write("a.txt", all);
  }

  static void expect_said(const std::string& output, const std::string& part) {
    EXPECT_NE(output.find(part), std::string::npos) << part << " in\n" << output;
  }

  SmallJob job_;
};

TEST_F(DataCheck, RecognisesAPath) {
  const Outcome outcome = motley({"data", "check", text(500)});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_said(outcome.out, "kind               text");
  expect_said(outcome.out, "nothing suspicious");
}

TEST_F(DataCheck, RefusesWhatItDoesNotRecognise) {
  const std::string path = job_.folder().write("a.dat", std::string("\0\1\2", 3));
  const Outcome outcome = motley({"data", "check", path});
  EXPECT_EQ(outcome.status, 8) << outcome.out;
  expect_said(outcome.err, "unrecognised data");
  EXPECT_EQ(motley({"data", "check", "/nonexistent"}).status, 3);
  EXPECT_EQ(motley({"data", "check", path, "--set", "data.kind=text"}).status, 2);
}

TEST_F(DataCheck, OfAConfigurationGivesSamplesAndEpochs) {
  const std::string config = job_.folder().write("job.toml", kSmallJob);
  const Outcome outcome = motley({"data", "check", config, "--json", "--set", "data.kind=text",
                                  "--set", "data.path=" + text(500)});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto facts = parse_json(outcome.out, "standard output");
  ASSERT_TRUE(facts.ok()) << outcome.out;
  EXPECT_GT((*facts)["train_samples"].get<int>(), 400);
  EXPECT_NEAR((*facts)["epochs"].get<double>(), 50.0 * 8 / (*facts)["train_samples"].get<double>(),
              1e-9);
  const Outcome refused = motley({"data", "check", config, "--set", "data.kind=text", "--set",
                                  "data.path=" + job_.folder().write("b.txt", "short")});
  EXPECT_EQ(refused.status, 8);
  expect_said(refused.err, "too short");
}

TEST_F(DataCheck, OfADryRunSaysWhatIsSuspicious) {
  const Outcome outcome = job_.train("run", {"--dry-run", "--set", "data.kind=text", "--set",
                                             "data.path=" + text(6), "--set", "data.holdout=0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_said(outcome.err, "fewer than train.global_batch = 8");
}

}  // namespace
}  // namespace motley::test
