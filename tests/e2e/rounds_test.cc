// Runs with rounds of local training: islands on machines of their own (all are this host), which
// synchronise every few steps.
#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"
#include "e2e/tensor_hashes.h"

namespace motley::test {
namespace {

using namespace std::string_literals;
using Words = std::vector<std::string>;

// A plan of two chunks: the micro-batches of each island, and whether each holds both chunks on one
// rank or has a rank for each.
struct Island {
  int micro_batches = 1;
  bool is_pipeline = false;
};

class Rounds : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(job_.train(base_, {"--stages", "2", "--stop-after", "1"}).status, 0);
    cluster_ = cluster_of("abcd");
  }

  // The path of a cluster file.
  [[nodiscard]] std::string cluster_of(const std::string& machines) const {
    std::string text = "[network]\ntrusted = true\n";
    for (const char name : machines) {
      text += fmt::format("[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\n", name);
    }
    return job_.folder().write(machines + ".toml", text);
  }

  // `rounds` without its islands; null: synchronous.
  [[nodiscard]] Words plan_of(const std::string& name,
                              const std::vector<Island>& islands,
                              Json rounds) const {
    const std::string changed = job_.changed_plan(base_, [&](Json& plan) {
      const Json rank = plan["ranks"][0];
      plan["ranks"] = Json::array();
      Json& chunks = plan["chunks"];
      for (Json& chunk : chunks) chunk["replicas"] = Json::array();
      Json members = Json::array();
      const auto add_rank = [&] {
        plan["ranks"].push_back(rank);
        const std::size_t number = plan["ranks"].size() - 1;
        plan["ranks"].back()["machine"] = std::string(1, static_cast<char>('a' + number));
        members.back().push_back(number);
        return number;
      };
      for (const Island& island : islands) {
        members.push_back(Json::array());
        const std::size_t first = add_rank();
        const std::size_t last = island.is_pipeline ? add_rank() : first;
        chunks[0]["replicas"].push_back({{"rank", first}, {"micro_batches", island.micro_batches}});
        chunks[1]["replicas"].push_back({{"rank", last}, {"micro_batches", island.micro_batches}});
      }
      if (rounds.is_null()) return;
      rounds["islands"] = members;
      plan["rounds"] = rounds;
    });
    const std::string kept = job_.folder().write(name + ".json", read_text(changed));
    return {"--plan", kept, "--cluster", cluster_};
  }

  static Json rounds(int steps, int start, const std::string& codec, int overlap = 0) {
    return {{"steps", steps}, {"overlap_steps", overlap}, {"start_steps", start},
            {"codec", codec}, {"outer_lr", 0.7},          {"outer_momentum", 0.6}};
  }

  void train(const std::string& run, const Words& plan, const Words& more = {}) const {
    Words words = plan;
    for (const char* setting : {"train.steps=24", "checkpoint.keep=0"}) {
      words.insert(words.end(), {"--set", setting});
    }
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = job_.train(run, words);
    ASSERT_EQ(outcome.status, 0) << run << ": " << outcome.err;
  }

  [[nodiscard]] std::map<std::string, std::string> hashes(const std::string& run, int step) const {
    return tensor_hashes(job_.run_dir(run), step);
  }

  [[nodiscard]] Words losses(const std::string& run) const {
    return metric_column(job_.run_dir(run), "loss");
  }

  // By step.
  [[nodiscard]] std::map<int, std::string> eval_losses(const std::string& run) const {
    std::map<int, std::string> losses;
    std::istringstream lines(read_text(job_.run_dir(run) + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json row = Json::parse(line);
      if (row.contains("eval_loss")) losses[row["step"].get<int>()] = row["eval_loss"].dump();
    }
    return losses;
  }

  static Words joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  SmallJob job_;
  std::string base_ = "two";  // the run with two stages whose plan is changed
  std::string cluster_;
};

// With rounds of one step, SGD without momentum inside and plain averaging outside, islands do what
// replicas do, but for the order of additions.
TEST_F(Rounds, OfOneStepAreSynchronousTraining) {
  const std::vector<Island> islands = {{.micro_batches = 3}, {.micro_batches = 1}};
  Json each_step = rounds(1, 0, "none");
  each_step["outer_lr"] = 1;
  each_step["outer_momentum"] = 0;
  const Words sgd = {"--set", "train.optimizer=sgd", "--set", "train.momentum=0",
                     "--set", "train.lr=0.1",        "--set", "train.clip=0"};
  train("replicas", plan_of("replicas", islands, nullptr), sgd);
  train("rounds", plan_of("rounds", islands, each_step), sgd);
  const Words expected = losses("replicas");
  const Words found = losses("rounds");
  ASSERT_EQ(found.size(), 24U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(std::stod(found[i]), std::stod(expected[i]), 2e-6 * std::stod(expected[i])) << i;
  }
}

TEST_F(Rounds, LearnAndHaveTheSameBitsEachTime) {
  const Words plan =
      plan_of("plan", {{.micro_batches = 3}, {.micro_batches = 1}}, rounds(5, 4, "int4"));
  train("one", plan);
  train("other", plan);
  EXPECT_EQ(losses("one"), losses("other"));
  EXPECT_EQ(hashes("one", 24), hashes("other", 24));
  EXPECT_LT(std::stod(losses("one").back()), std::stod(losses("one").front()));
}

// The islands' bits do not depend on how one of them divides the model: with a codec if all of its
// parameters are all-reduced among equally many ranks, which a tied one is not.
TEST_F(Rounds, APipelineIslandComputesWhatOneDeviceDoes) {
  for (const auto& [name, codec, tied, overlap] :
       {std::tuple("exact", "none", "true", 0), std::tuple("coded", "int4", "false", 0),
        std::tuple("exact-overlap", "none", "true", 2),
        std::tuple("coded-overlap", "int4", "false", 4)}) {
    const Json by_five = rounds(5, 0, codec, overlap);
    const Words untied = SmallJob::measured_with({fmt::format("model.tied={}", tied)});
    base_ = name + "-base"s;
    ASSERT_EQ(job_.train(base_, joined({"--stages", "2", "--stop-after", "1"}, untied)).status, 0);
    const auto run = [&](const std::string& kind, const std::vector<Island>& islands) {
      train(name + kind, plan_of(name + kind, islands, by_five), untied);
      return std::pair(losses(name + kind), job_.parameter_hash(name + kind, 24));
    };
    const auto devices = run("-devices", {{3, false}, {1, false}});
    EXPECT_EQ(run("-pipeline", {{3, false}, {1, true}}), devices) << name;
    EXPECT_EQ(run("-pipelines", {{3, true}, {1, true}}), devices) << name;
  }
}

// Steps during the all-reduces of a round change the result, but always in the same way.
TEST_F(Rounds, MayOverlapTheNextRound) {
  const std::vector<Island> islands = {{.micro_batches = 3}, {.micro_batches = 1}};
  train("blocking", plan_of("blocking", islands, rounds(5, 4, "int4")));
  const Words plan = plan_of("plan", islands, rounds(5, 4, "int4", 2));
  train("one", plan);
  train("other", plan);
  EXPECT_EQ(losses("one"), losses("other"));
  EXPECT_EQ(hashes("one", 24), hashes("other", 24));
  const Words one = losses("one");
  const Words blocking = losses("blocking");
  EXPECT_EQ(Words(one.begin(), one.begin() + 9), Words(blocking.begin(), blocking.begin() + 9));
  EXPECT_NE(one[10], blocking[10]);
  EXPECT_LT(std::stod(one.back()), std::stod(one.front()));
}

// A stop waits for the adoption of an offer. The anchor is saved and evaluated there, and each
// island's parameters beside it.
TEST_F(Rounds, GoOnWithTheBitsOfAnUnbrokenRunWithOverlap) {
  const Words plan = plan_of("plan", {{.micro_batches = 2}, {1, true}, {.micro_batches = 1}},
                             rounds(5, 4, "int4", 2));
  const Words evaluated = {"--set", "train.eval_every=11", "--set", "train.eval_batches=1"};
  train("whole", plan, evaluated);
  train("broken", plan, joined({"--stop-after", "2"}, evaluated));
  train("broken", plan, joined({"--stop-after", "6", "--resume"}, evaluated));
  train("broken", plan, joined({"--stop-after", "16", "--resume"}, evaluated));
  train("broken", plan, joined({"--resume"}, evaluated));
  EXPECT_EQ(losses("broken"), losses("whole"));
  // Sessions also end with an evaluation.
  const auto of_broken = eval_losses("broken");
  const auto of_whole = eval_losses("whole");
  EXPECT_EQ(of_broken.at(11), of_whole.at(11));
  EXPECT_EQ(of_broken.at(24), of_whole.at(24));
  EXPECT_EQ(hashes("broken", 24), hashes("whole", 24));
  const auto saved = hashes("broken", 11);
  EXPECT_FALSE(saved.empty());
  EXPECT_FALSE(hashes("broken", 16).empty());
  EXPECT_TRUE(saved.contains("local.island.0/wte.weight"));
  EXPECT_TRUE(saved.contains("local.island.2/wte.weight"));
  EXPECT_NE(saved.at("local.island.0/wte.weight"), saved.at("wte.weight"));
}

// A stop waits for the end of a round; residuals, outer momentum and each island's moments are
// saved there.
TEST_F(Rounds, GoOnWithTheBitsOfAnUnbrokenRun) {
  const Words plan = plan_of("plan", {{.micro_batches = 2}, {1, true}, {.micro_batches = 1}},
                             rounds(5, 4, "int4"));
  train("whole", plan);
  train("broken", plan, {"--stop-after", "2"});
  train("broken", plan, {"--stop-after", "6", "--resume"});
  train("broken", plan, {"--stop-after", "19", "--resume"});
  train("broken", plan, {"--resume"});
  EXPECT_EQ(losses("broken"), losses("whole"));
  const auto expected = hashes("whole", 24);
  EXPECT_EQ(hashes("broken", 24), expected);
  EXPECT_FALSE(hashes("broken", 9).empty());
  EXPECT_FALSE(hashes("broken", 19).empty());
  EXPECT_TRUE(expected.contains("outer_momentum/wte.weight"));
  EXPECT_TRUE(expected.contains("round_residual.1/wte.weight"));
  EXPECT_TRUE(expected.contains("exp_avg_sq.island.2/wte.weight"));
}

// The start on one island is the training of that island alone, to the bit; so is a run that is
// resumed within it.
TEST_F(Rounds, MayStartOnOneIsland) {
  for (const int island : {0, 1}) {
    const std::string name = fmt::format("on-{}-", island);
    Json by_five = rounds(5, 9, "int4");
    by_five["start_island"] = island;
    const Words plan = plan_of(name + "plan", {{2, false}, {2, true}}, by_five);
    train(name + "whole", plan);
    train(name + "broken", plan, {"--stop-after", "6"});
    train(name + "broken", plan, {"--stop-after", "12", "--resume"});
    train(name + "broken", plan, {"--resume"});
    EXPECT_EQ(losses(name + "broken"), losses(name + "whole"));
    EXPECT_EQ(hashes(name + "broken", 24), hashes(name + "whole", 24));
    train(name + "alone", {"--stages", "1"}, {"--stop-after", "9"});
    train(name + "six", {"--stages", "1"}, {"--stop-after", "6"});
    EXPECT_EQ(job_.parameter_hash(name + "broken", 6), job_.parameter_hash(name + "six", 6));
    const Words alone = losses(name + "alone");
    const Words whole = losses(name + "whole");
    EXPECT_EQ(Words(whole.begin(), whole.begin() + 9), alone);
  }
}

// Parameters differ in their numbers of moments, and ranks in what they hold of them: all send
// equally many arrays at the end of the start.
TEST_F(Rounds, MayStartOnOneIslandWithMuon) {
  Json by_five = rounds(5, 6, "none");
  by_five["start_island"] = 0;
  const Words muon = {"--set", "train.optimizer=muon", "--stop-after", "14"};
  train("pipelines", plan_of("pipelines", {{2, true}, {2, true}}, by_five), muon);
  train("devices", plan_of("devices", {{2, false}, {2, false}}, by_five), muon);
  EXPECT_EQ(losses("pipelines"), losses("devices"));
  EXPECT_EQ(job_.parameter_hash("pipelines", 16), job_.parameter_hash("devices", 16));
}

TEST_F(Rounds, GoOnWithOtherIslandsOrWithout) {
  train("run", plan_of("two", {{3, false}, {1, false}}, rounds(5, 4, "int4")),
        {"--stop-after", "9"});
  train("run", plan_of("three", {{2, false}, {1, true}, {1, false}}, rounds(3, 4, "int8")),
        {"--stop-after", "15", "--resume", "--allow-changes"});
  train("run", plan_of("overlap", {{2, false}, {2, false}}, rounds(6, 4, "int4", 1)),
        {"--stop-after", "17", "--resume", "--allow-changes"});
  train("run", plan_of("without", {{2, false}, {2, false}}, rounds(3, 4, "int4")),
        {"--stop-after", "22", "--resume", "--allow-changes"});
  train("run", {"--stages", "1"}, {"--resume", "--allow-changes"});
  EXPECT_EQ(losses("run").size(), 24U);
  EXPECT_LT(std::stod(losses("run").back()), std::stod(losses("run").front()));
}

// A resume without a machine has no rounds, and the next one with it has.
TEST_F(Rounds, ComeBackWithTheMachines) {
  const auto train_on = [&](const std::string& machines, const Words& more) {
    train("run", {"--cluster", cluster_of(machines), "--set", "parallel.rounds=4"}, more);
    return Json::parse(read_text(job_.run_dir("run") + "/plan.json"));
  };
  EXPECT_TRUE(train_on("ab", {"--stop-after", "8"}).contains("rounds"));
  EXPECT_FALSE(train_on("a", {"--resume", "--stop-after", "12"}).contains("rounds"));
  EXPECT_TRUE(train_on("ab", {"--resume"}).contains("rounds"));
}

// Between the ends of rounds only votes cross the network.
TEST_F(Rounds, SendNothingButVotesWithinARound) {
  train("run", plan_of("plan", {{2, false}, {2, false}}, rounds(5, 4, "int4")));
  const Words bytes = metric_column(job_.run_dir("run"), "wire_bytes");
  ASSERT_EQ(bytes.size(), 24U);
  const auto sent = [&](int step) { return std::stod(bytes[static_cast<std::size_t>(step - 1)]); };
  for (const int local : {5, 6, 7, 8, 10, 13, 21}) EXPECT_LT(sent(local), 0.05 * sent(4)) << local;
  for (const int end : {9, 14, 19, 24}) {
    EXPECT_LT(sent(end), 0.2 * sent(4)) << end;
    EXPECT_GT(sent(end), 0.1 * sent(4)) << end;
  }
}

}  // namespace
}  // namespace motley::test
