// The monitoring files of a run, and what viewers show of them.
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WatchedRun : public testing::Test {
 protected:
  WatchedRun() {
    EXPECT_EQ(job_.train("run", {"--stages", "2", "--set", "train.steps=20", "--set",
                                 "checkpoint.every=10"})
                  .status,
              0);
  }

  [[nodiscard]] std::vector<Json> lines_of(const std::string& name) const {
    const std::string text = read_text(std::filesystem::path(job_.run_dir("run")) / name);
    std::vector<Json> lines;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1) {
      const auto json = parse_json(text.substr(at, end - at), name);
      EXPECT_TRUE(json.ok());
      if (json.ok()) lines.push_back(*json);
    }
    return lines;
  }

  SmallJob job_;
};

TEST_F(WatchedRun, TellsWhereTheTimeAndTheBytesWent) {
  const auto steps = lines_of("metrics.jsonl");
  ASSERT_EQ(steps.size(), 20U);
  double last_s = 0;
  for (const Json& step : steps) {
    EXPECT_GE(step["time"], last_s);
    last_s = step["time"].get<double>();
    ASSERT_EQ(step["ranks"].size(), 2U);
    for (std::size_t r = 0; r < 2; ++r) {
      const Json& rank = step["ranks"][r];
      EXPECT_GT(rank["compute_s"], 0);
      EXPECT_GT(rank["memory_bytes"], 1'000'000);
      double waited_s = 0;
      for (const auto& [cause, seconds] : rank["wait_s"].items()) waited_s += seconds.get<double>();
      EXPECT_EQ(waited_s, step["wait_s"][r].get<double>());
    }
    double bytes = 0;
    for (const Json& link : step["links"]) bytes += link["bytes"].get<double>();
    EXPECT_EQ(bytes, step["wire_bytes"].get<double>());
  }
  // They equal the predicted ones.
  const Json predicted = lines_of("prediction.json").at(0);
  for (const Json& link : steps.back()["links"]) {
    double bytes = 0;
    for (const Json& each : predicted["links"]) {
      if (each["from"] == link["from"] && each["to"] == link["to"]) bytes = each["bytes"];
    }
    EXPECT_EQ(bytes, link["bytes"].get<double>());
  }
}

TEST_F(WatchedRun, TellsWhatHappened) {
  std::vector<std::string> kinds;
  for (const Json& event : lines_of("events.jsonl")) {
    kinds.push_back(event["kind"].get<std::string>() + " " + event["step"].dump());
  }
  EXPECT_THAT(kinds, ElementsAre("started 0", "checkpoint 10", "checkpoint 20", "ended 20"));
  // With the same text as in the log.
  const std::string log = read_text(std::filesystem::path(job_.run_dir("run")) / "log/motley.log");
  for (const Json& event : lines_of("events.jsonl")) {
    EXPECT_THAT(log, HasSubstr(event["text"].get<std::string>()));
  }
}

TEST_F(WatchedRun, IsShownWhereNothingCanBeRedrawn) {
  const Outcome watched = motley({"watch", job_.run_dir("run"), "--tui"});
  EXPECT_EQ(watched.status, 0) << watched.err;
  EXPECT_THAT(watched.out, HasSubstr("step 20/20  loss "));
  EXPECT_EQ(motley({"watch", job_.run_dir("none")}).status, 3);
}

}  // namespace
}  // namespace motley::test
