// Steps whose targets are all ignored or without weight, with the built programs: they change
// nothing under any plan, and are counted. The package is one of tests/models.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/motley_command.h"
#include "support/npy_text.h"

namespace motley::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSamples = 40;
constexpr std::int64_t kLength = 8;
constexpr std::int64_t kIgnored = -100;

std::string longs(const std::vector<std::int64_t>& values) {
  std::string bytes(values.size() * sizeof(std::int64_t), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return npy_of(npy_header("<i8", {kSamples, kLength}), bytes);
}

class TargetlessSteps : public testing::Test {
 protected:
  // `without`: the number of samples without targets, which come first: all theirs are `ignored`.
  void write_data(std::int64_t without, std::int64_t ignored = kIgnored) const {
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> targets;
    for (std::int64_t k = 0; k < kSamples * kLength; ++k) {
      inputs.push_back(k * k % 47);
      targets.push_back(k < without * kLength ? ignored : (k * k + 2 * k + 1) % 47);
    }
    std::filesystem::create_directories(folder_ / "data");
    folder_.write("data/inputs.npy", longs(inputs));
    folder_.write("data/targets.npy", longs(targets));
  }

  // The first run measures; later runs use its profile.
  Outcome train(const std::string& run, const std::vector<std::string>& extra) {
    std::vector<std::string> words = {"train", config_,
                                      "--run", (folder_ / run).string(),
                                      "--set", "data.path=" + (folder_ / "data").string()};
    std::ranges::copy(extra, std::back_inserter(words));
    if (!measured_.empty()) {
      words.insert(words.end(), {"--profile", (folder_ / measured_ / "profile.json").string()});
    }
    const Outcome outcome = motley(words);
    if (outcome.status == 0 && measured_.empty()) measured_ = run;
    return outcome;
  }

  [[nodiscard]] std::vector<Json> lines_of(const std::string& file) const {
    std::vector<Json> lines;
    std::istringstream text(read_text(folder_ / file));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  struct Result {
    std::vector<std::string> steps;  // the metrics of each, without times
    std::string hash;

    friend bool operator==(const Result&, const Result&) = default;
  };

  [[nodiscard]] Result result(const std::string& run) const {
    Result found;
    for (const Json& line : lines_of(run + "/metrics.jsonl")) {
      Json kept = Json::object();
      for (const char* key : {"step", "loss", "tokens", "lr", "grad_norm", "skipped",
                              "without_targets", "eval_loss", "eval_without_targets"}) {
        if (line.contains(key)) kept[key] = line[key];
      }
      found.steps.push_back(kept.dump());
    }
    const auto manifest = folder_ / run / "checkpoints/step-000014/manifest.json";
    found.hash = Json::parse(read_text(manifest)).at("parameter_hash").get<std::string>();
    return found;
  }

  [[nodiscard]] std::vector<std::int64_t> steps_without(const std::string& run) const {
    std::vector<std::int64_t> steps;
    for (const Json& line : lines_of(run + "/metrics.jsonl")) {
      if (line.contains("without_targets")) steps.push_back(line["step"].get<std::int64_t>());
    }
    return steps;
  }

  [[nodiscard]] int warnings_with(const std::string& run, const std::string& words) const {
    return static_cast<int>(
        std::ranges::count_if(lines_of(run + "/events.jsonl"), [&](const Json& event) {
          return event["kind"] == "warning" &&
                 event["text"].get<std::string>().find(words) != std::string::npos;
        }));
  }

  // The whole model on two ranks, from the plan of a run with two stages.
  [[nodiscard]] std::string replicated(const std::string& run) const {
    Json plan = Json::parse(read_text(folder_ / run / "plan.json"));
    Json chunk = plan["chunks"][0];
    chunk["layer_count"] =
        chunk["layer_count"].get<int>() + plan["chunks"][1]["layer_count"].get<int>();
    const int micro_batches = plan["micro_batches"].get<int>();
    chunk["replicas"] = {{{"rank", 0}, {"micro_batches", micro_batches - 1}},
                         {{"rank", 1}, {"micro_batches", 1}}};
    plan["chunks"] = Json::array({chunk});
    plan.erase("hash");
    return folder_.write("replicated.json", plan.dump());
  }

  TemporaryFolder folder_;
  std::string measured_;
  std::string config_ = folder_.write("job.toml", R"(
[model]
kind = "package"
path = ")" + std::string(MOTLEY_PACKAGES) + R"(/gpt2-tiny.motley"
[data]
kind = "arrays"
holdout = 0.1
[train]
steps = 14
global_batch = 4
micro_batch = 2
warmup_steps = 2
lr = 1e-2
clip = 0.5
eval_every = 7
eval_batches = 1
[checkpoint]
every = 0
[run]
threads = 1
restarts = 0
)");
};

TEST_F(TargetlessSteps, ChangeNothingUnderAnyPlan) {
  write_data(30);
  const Outcome one = train("one", {"--stages", "1"});
  ASSERT_EQ(one.status, 0) << one.err;
  const Result expected = result("one");
  ASSERT_EQ(expected.steps.size(), 14U);
  const auto without = steps_without("one");
  ASSERT_GE(without.size(), 2U) << "the data has no such batches";
  ASSERT_LT(without.size(), 14U);
  EXPECT_EQ(warnings_with("one", "has no targets"), 1);
  EXPECT_EQ(warnings_with("one", "steps had no targets"), 1);
  EXPECT_EQ(warnings_with("one", "30 of 40 samples have no target"), 1);
  EXPECT_EQ(Json::parse(read_text(folder_ / "one/report.json"))["steps_without_targets"],
            without.size());
  const std::vector<std::pair<const char*, std::vector<std::string>>> others = {
      {"two", {"--stages", "2", "--set", "parallel.schedule=1f1b"}},
      {"split", {"--stages", "3", "--set", "parallel.schedule=split"}},
      {"recomputed",
       {"--stages", "2", "--set", "parallel.schedule=gpipe", "--set", "parallel.recompute=all"}}};
  for (const auto& [run, extra] : others) {
    const Outcome outcome = train(run, extra);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(result(run), expected) << run;
  }
  const std::string last = std::to_string(without.front());
  ASSERT_EQ(train("broken", {"--stages", "2", "--stop-after", last}).status, 0);
  const Outcome resumed = train("broken", {"--stages", "1", "--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  // It has one additional evaluation, at the step where it stopped.
  EXPECT_EQ(result("broken").hash, expected.hash);
  EXPECT_EQ(metric_column((folder_ / "broken").string(), "loss"),
            metric_column((folder_ / "one").string(), "loss"));
}

// Compressed gradients with residuals; one of the replicas may have no target.
TEST_F(TargetlessSteps, ChangeNothingOnReplicas) {
  write_data(30);
  ASSERT_EQ(train("two", {"--stages", "2"}).status, 0);
  const auto without = steps_without("two");
  const std::string plan = replicated("two");
  const Outcome shared = train("shared", {"--plan", plan});
  ASSERT_EQ(shared.status, 0) << shared.err;
  EXPECT_EQ(steps_without("shared"), without);
  const auto one = lines_of("two/metrics.jsonl");
  const auto other = lines_of("shared/metrics.jsonl");
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i]["loss"].is_null(), other[i]["loss"].is_null());
    if (one[i]["loss"].is_null()) continue;
    EXPECT_NEAR(one[i]["loss"].get<double>(), other[i]["loss"].get<double>(), 1e-5);
  }
}

// Of a native model: targets of classes with weight 0, with and without label smoothing.
TEST_F(TargetlessSteps, OfClassesWithoutWeightChangeNothing) {
  constexpr std::int64_t kWeightless = 46;
  write_data(30, kWeightless);
  std::string weights = "[0.5";
  for (std::int64_t c = 1; c < kWeightless; ++c) weights += c % 3 == 0 ? ", 0.25" : ", 1.5";
  weights += ", 0]";
  for (const char* smoothing : {"0", "0.1"}) {
    SCOPED_TRACE(smoothing);
    measured_.clear();
    const std::string prefix = "smoothed-" + std::string(smoothing) + "-";
    const auto run = [&](const std::string& name, const std::vector<std::string>& extra) {
      std::vector<std::string> words = extra;
      for (const std::string& setting :
           {std::string("model.kind=mlp"), std::string("model.vocab=47"),
            std::string("model.context=8"), std::string("model.layers=2"),
            std::string("model.width=16"), "train.class_weights=" + weights,
            "train.label_smoothing=" + std::string(smoothing)}) {
        words.insert(words.end(), {"--set", setting});
      }
      const Outcome outcome = train(prefix + name, words);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
    };
    run("one", {"--stages", "1"});
    const Result expected = result(prefix + "one");
    const auto without = steps_without(prefix + "one");
    ASSERT_GE(without.size(), 2U) << "the data has no such batches";
    ASSERT_LT(without.size(), 14U);
    run("two", {"--stages", "2"});
    EXPECT_EQ(result(prefix + "two"), expected);
    run("split", {"--stages", "3", "--set", "parallel.schedule=split"});
    EXPECT_EQ(result(prefix + "split"), expected);
    run("shared", {"--plan", replicated(prefix + "two")});
    EXPECT_EQ(steps_without(prefix + "shared"), without);
    const auto one = lines_of(prefix + "one/metrics.jsonl");
    const auto shared = lines_of(prefix + "shared/metrics.jsonl");
    ASSERT_EQ(one.size(), shared.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i]["tokens"], shared[i]["tokens"]);
      ASSERT_EQ(one[i]["loss"].is_null(), shared[i]["loss"].is_null());
      if (one[i]["loss"].is_null()) continue;
      EXPECT_NEAR(one[i]["loss"].get<double>(), shared[i]["loss"].get<double>(), 1e-5);
    }
  }
}

TEST_F(TargetlessSteps, OfAnEvaluationAreLeftOut) {
  write_data(40);
  // One sample has a target to train on; the held-out ones have none.
  const Outcome none = train("none", {"--stages", "1"});
  EXPECT_EQ(none.status, 8) << none.err;
  EXPECT_THAT(none.err, HasSubstr("no targets, "));
  write_data(36);
  const Outcome few = train("few", {"--stages", "2", "--set", "train.eval_batches=3"});
  ASSERT_EQ(few.status, 0) << few.err;
  for (const Json& line : lines_of("few/metrics.jsonl")) {
    EXPECT_EQ(line["skipped"], false);
    if (line["step"] != 14) continue;
    const bool is_empty = line.contains("eval_without_targets");
    EXPECT_NE(line.contains("eval_loss"), is_empty) << line.dump();
    EXPECT_TRUE(is_empty || line["eval_loss"].is_number()) << line.dump();
  }
}

}  // namespace
}  // namespace motley::test
