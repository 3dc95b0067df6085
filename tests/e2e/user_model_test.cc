// Models exported by motley.export, trained by the built programs: the same bits under every plan,
// statistics on replicas, and resuming. The packages are those of tests/models.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/motley_command.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 12;

class PackageRun : public testing::Test {
 protected:
  static std::string package(const std::string& name) {
    return std::string(MOTLEY_PACKAGES) + "/" + name + ".motley";
  }

  [[nodiscard]] std::filesystem::path copy_of_cnn(const std::string& name) const {
    const auto copy = folder_ / (name + ".motley");
    std::filesystem::copy(package("cnn"), copy, std::filesystem::copy_options::recursive);
    return copy;
  }

  // The first run measures; later runs use its profile.
  [[nodiscard]] std::vector<std::string> words(const std::string& run,
                                               const std::vector<std::string>& extra) {
    std::vector<std::string> all = {"train", config_,
                                    "--run", (folder_ / run).string(),
                                    "--set", "model.path=" + package(package_)};
    std::ranges::copy(settings_, std::back_inserter(all));
    std::ranges::copy(extra, std::back_inserter(all));
    if (!measured_.empty()) {
      all.insert(all.end(), {"--profile", (folder_ / measured_ / "profile.json").string()});
    }
    return all;
  }

  Outcome train(const std::string& run, const std::vector<std::string>& extra) {
    const Outcome outcome = motley(words(run, extra));
    if (outcome.status == 0 && measured_.empty()) measured_ = run;
    return outcome;
  }

  // The values of a field, from the lines of metrics.jsonl that have it.
  [[nodiscard]] std::vector<std::string> values_of(const std::string& run,
                                                   const std::string& field) const {
    std::vector<std::string> values;
    std::istringstream lines(read_text(folder_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json metrics = Json::parse(line);
      if (metrics.contains(field)) values.push_back(metrics[field].dump());
    }
    return values;
  }

  struct Result {
    std::vector<std::string> losses;
    std::string accuracy;  // of the held-out samples, at the end
    std::string top5;      // as well; "" for few classes
    std::string hash;

    friend bool operator==(const Result&, const Result&) = default;
  };

  [[nodiscard]] Result result(const std::string& run) const {
    const auto manifest = folder_ / run / "checkpoints/step-000012/manifest.json";
    const auto top5 = values_of(run, "eval_top5_accuracy");
    return {metric_column((folder_ / run).string(), "loss"), values_of(run, "eval_accuracy").back(),
            top5.empty() ? "" : top5.back(),
            Json::parse(read_text(manifest)).at("parameter_hash").get<std::string>()};
  }

  TemporaryFolder folder_;
  std::string package_ = "cnn";
  std::vector<std::string> settings_;
  std::string config_ = folder_.write("job.toml", R"(
[model]
kind = "package"
[data]
kind = "synthetic"
holdout = 0.1
[train]
steps = 12
global_batch = 12
micro_batch = 3
warmup_steps = 2
lr = 1e-2
eval_every = 6
eval_batches = 1
[checkpoint]
every = 0
[run]
threads = 1
)");
  std::string measured_;
};

class PackageIndependence : public PackageRun, public testing::WithParamInterface<const char*> {};

TEST_P(PackageIndependence, HoldsForStagesSchedulesAndRecomputation) {
  package_ = GetParam();
  const Outcome one = train("one", {"--stages", "1"});
  ASSERT_EQ(one.status, 0) << one.err;
  const Result expected = result("one");
  ASSERT_EQ(expected.losses.size(), static_cast<std::size_t>(kSteps));
  ASSERT_NE(expected.losses.front(), expected.losses.back());
  const std::vector<std::pair<const char*, std::vector<std::string>>> others = {
      {"two", {"--stages", "2", "--set", "parallel.schedule=1f1b"}},
      {"split", {"--stages", "3", "--set", "parallel.schedule=split"}},
      {"four", {"--stages", "4", "--set", "parallel.schedule=split"}},
      {"recomputed",
       {"--stages", "2", "--set", "parallel.schedule=gpipe", "--set", "parallel.recompute=all"}},
  };
  for (const auto& [run, extra] : others) {
    const Outcome outcome = train(run, extra);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(result(run), expected) << run;
  }
}

INSTANTIATE_TEST_SUITE_P(Package,
                         PackageIndependence,
                         testing::Values("cnn", "exact", "vit-tiny", "gpt2-tiny", "llama-tiny"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_F(PackageRun, GoesOnUnderAnotherPlan) {
  ASSERT_EQ(train("whole", {"--stages", "2"}).status, 0);
  ASSERT_EQ(train("parted", {"--stages", "3", "--stop-after", "5"}).status, 0);
  const Outcome resumed = train("parted", {"--stages", "1", "--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(result("parted"), result("whole"));
}

// Statistics of BatchNorm are a mean over all micro-batches, on whichever replica. Plain gradient
// descent: the gradient of a bias before a BatchNorm is only rounding noise, which AdamW would
// scale up to full steps.
TEST_F(PackageRun, LearnsTheSameOnReplicas) {
  settings_ = {"--set", "train.optimizer=sgd"};
  ASSERT_EQ(train("alone", {"--stages", "1"}).status, 0);
  ASSERT_EQ(train("two", {"--stages", "2"}).status, 0);
  Json plan = Json::parse(read_text(folder_ / "two" / "plan.json"));
  plan.erase("hash");
  Json chunk = plan["chunks"][0];
  chunk["layer_count"] =
      chunk["layer_count"].get<int>() + plan["chunks"][1]["layer_count"].get<int>();
  chunk["replicas"] = {{{"rank", 0}, {"micro_batches", 3}}, {{"rank", 1}, {"micro_batches", 1}}};
  plan["chunks"] = Json::array({chunk});
  const std::string file = folder_.write("replicas.json", plan.dump());
  const Outcome outcome = train("replicas", {"--plan", file});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  // Held-out losses are computed with the statistics.
  for (const char* column : {"loss", "eval_loss"}) {
    const auto alone = values_of("alone", column);
    const auto both = values_of("replicas", column);
    ASSERT_EQ(both.size(), alone.size()) << column;
    ASSERT_FALSE(both.empty()) << column;
    for (std::size_t i = 0; i < both.size(); ++i) {
      const double expected = std::stod(alone[i]);
      EXPECT_NEAR(std::stod(both[i]), expected, 1e-5 * expected) << column << " " << i;
    }
  }
}

// One of the two replicas of the second chunk also holds the first, and receives its output without
// a frame.
TEST_F(PackageRun, PassesExactValuesToSharesOfAStage) {
  package_ = "exact";
  ASSERT_EQ(train("alone", {"--stages", "1"}).status, 0);
  ASSERT_EQ(train("two", {"--stages", "2"}).status, 0);
  Json plan = Json::parse(read_text(folder_ / "two" / "plan.json"));
  plan.erase("hash");
  plan["chunks"][1]["replicas"] = {{{"rank", 0}, {"micro_batches", 1}},
                                   {{"rank", 1}, {"micro_batches", 3}}};
  const std::string file = folder_.write("shares.json", plan.dump());
  const Outcome outcome = train("shares", {"--plan", file});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto alone = values_of("alone", "loss");
  const auto shares = values_of("shares", "loss");
  ASSERT_EQ(shares.size(), alone.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double expected = std::stod(alone[i]);
    EXPECT_NEAR(std::stod(shares[i]), expected, 1e-5 * expected) << i;
  }
}

// A codec that encoded exact values would change the integers, which are indices.
TEST_F(PackageRun, RoundsNoExactValues) {
  package_ = "exact";
  settings_ = {"--set", "compression.activations=int8"};
  ASSERT_EQ(train("coded", {"--stages", "2"}).status, 0);
  ASSERT_EQ(train("uncoded", {"--stages", "2", "--set", "compression.activations=none"}).status, 0);
  const auto coded = values_of("coded", "loss");
  const auto uncoded = values_of("uncoded", "loss");
  ASSERT_EQ(coded.size(), static_cast<std::size_t>(kSteps));
  const double expected = std::stod(uncoded.back());
  EXPECT_NEAR(std::stod(coded.back()), expected, 0.05 * expected);
}

TEST_F(PackageRun, OfALanguageModelWritesTokens) {
  package_ = "gpt2-tiny";
  ASSERT_EQ(train("run", {"--stages", "2"}).status, 0);
  const Outcome written =
      motley({"generate", (folder_ / "run").string(), "--prompt", "1,2,3", "--tokens", "9"});
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(std::ranges::count(written.out, ','), 11) << written.out;
}

TEST_F(PackageRun, OfAnotherPackageIsNotGoneOnWith) {
  ASSERT_EQ(train("run", {"--stages", "1", "--stop-after", "4"}).status, 0);
  package_ = "mlp";
  measured_.clear();
  const Outcome refused = train("run", {"--stages", "1", "--resume"});
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, HasSubstr("of another model"));
}

TEST_F(PackageRun, BeginsWithTheWeightsThatWereExported) {
  const auto changed = copy_of_cnn("changed");
  std::string weights = read_text(changed / "weights.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  folder_.write("changed.motley/weights.safetensors", weights);
  const Outcome refused =
      train("run", {"--stages", "1", "--set", "model.path=" + changed.string()});
  EXPECT_EQ(refused.status, 7);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("damaged package"), HasSubstr("SHA-256")));
}

TEST_F(PackageRun, ItsPackageIsShownAndVerified) {
  const Outcome shown = motley({"package", "show", package("cnn"), "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  const Json json = Json::parse(shown.out);
  EXPECT_EQ(json["layers"].size(), 5U);
  EXPECT_EQ(json["layers"][0]["outputs"][0].size(), 3U);
  EXPECT_TRUE(std::ranges::count(json["operations"], "aten::convolution") == 1) << shown.out;
  EXPECT_THAT(motley({"package", "verify", package("cnn")}).out, HasSubstr("intact: 5 layers"));

  const auto changed = copy_of_cnn("changed");
  std::string weights = read_text(changed / "weights.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  folder_.write("changed.motley/weights.safetensors", weights);
  const Outcome refused = motley({"package", "verify", changed.string()});
  EXPECT_EQ(refused.status, 7);
  EXPECT_THAT(refused.err, HasSubstr("weights.safetensors"));
}

TEST_F(PackageRun, IsRefusedEarlyWhereThePackageIsNoGood) {
  const auto bad_operation = copy_of_cnn("operation");
  std::string text = read_text(bad_operation / "package.json");
  const std::size_t place = text.find("aten::convolution\"");
  ASSERT_NE(place, std::string::npos);
  text.replace(place, 17, "aten::load_binary");
  folder_.write("operation.motley/package.json", text);
  const auto short_weights = copy_of_cnn("weights");
  std::filesystem::resize_file(short_weights / "weights.safetensors", 100);

  struct Case {
    std::string path;
    int status;
    std::string part;
  };

  for (const Case& each : {Case{(folder_ / "none").string(), 3, "none"},
                           Case{bad_operation.string(), 3, "load_binary"},
                           Case{short_weights.string(), 7, "weights.safetensors"}}) {
    const MotleyWithoutWorker program;
    const Outcome outcome = program.run({"train", config_, "--run", (folder_ / "run").string(),
                                         "--set", "model.path=" + each.path});
    EXPECT_EQ(outcome.status, each.status) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("motley: error: "), HasSubstr(each.part)));
    EXPECT_FALSE(program.worker_was_started());
  }
}

// The other machine is this computer, with a shell that rewrites paths.
TEST_F(PackageRun, IsRefusedEarlyWhereAMachineHasNoPackage) {
  const auto there = copy_of_cnn("there");
  const std::string cluster = folder_.write("cluster.toml", R"toml(
[[machine]]
name = "near"
address = "127.0.0.1"
[[machine]]
name = "far"
address = "127.0.0.1"
shell = ["sh", "-c", 'for w; do set -- "$@" "$(echo "$w" | sed s#here.mot#there.mot#)"; shift; done; exec "$@"', "sh"]
)toml");
  const std::string here = copy_of_cnn("here").string();
  const auto launch = [&](const char* verb) {
    const MotleyWithoutWorker program;
    std::vector<std::string> words = {verb,    config_, "--cluster",
                                      cluster, "--set", "model.path=" + here};
    if (verb == std::string("launch")) {
      words.insert(words.end(), {"--run", (folder_ / "run").string()});
    }
    const Outcome outcome = program.run(words);
    return std::pair(outcome, program.worker_was_started());
  };
  EXPECT_TRUE(launch("profile").second);  // both machines see the package
  std::filesystem::remove_all(there);
  for (const char* verb : {"launch", "plan", "profile"}) {
    const auto [outcome, started] = launch(verb);
    EXPECT_EQ(outcome.status, 3) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(here), HasSubstr("far: it is not there")));
    EXPECT_FALSE(started) << verb;
  }
}

}  // namespace
}  // namespace motley::test
