// Runs with momentum correction: SGD, replicas on two machines, gradients by topk. Saving and
// resuming loses nothing; under the same plan the bits are the same.
#include <fmt/format.h>

#include <map>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"
#include "e2e/tensor_hashes.h"

namespace motley::test {
namespace {

using Hashes = std::map<std::string, std::string>;  // of tensors, by name
using Words = std::vector<std::string>;

class CorrectedAllreducesRun : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(job_.train("two", {"--stages", "2", "--stop-after", "1"}).status, 0);
    std::string text = "[network]\ntrusted = true\n";
    for (const char* machine : {"a", "b", "c"}) {
      text += fmt::format("[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\n", machine);
    }
    cluster_ = job_.folder().write("cluster.toml", text);
  }

  static Words settings() {
    Words words;
    for (const char* setting : {"train.steps=24", "train.optimizer=sgd", "train.momentum=0.9",
                                "train.lr=0.1", "compression.gradients=topk(0.02)|fp16",
                                "compression.warmup_steps=16", "checkpoint.keep=0"}) {
      words.insert(words.end(), {"--set", setting});
    }
    return words;
  }

  // The whole model on each of these machines; `shares`: how many of the four micro-batches each
  // computes.
  [[nodiscard]] Words replicas(const std::string& name, const std::vector<int>& shares) const {
    const std::string changed = job_.changed_plan("two", [&](Json& plan) {
      Json chunk = plan["chunks"][0];
      chunk["layer_count"] = 6;
      chunk["replicas"] = Json::array();
      const Json rank = plan["ranks"][0];
      plan["ranks"] = Json::array();
      for (std::size_t i = 0; i < shares.size(); ++i) {
        chunk["replicas"].push_back({{"rank", i}, {"micro_batches", shares[i]}});
        plan["ranks"].push_back(rank);
        plan["ranks"].back()["machine"] = std::string(1, static_cast<char>('a' + i));
      }
      plan["chunks"] = Json::array({chunk});
      plan["gradient_codec"] = "topk(0.02)|fp16";
    });
    const std::string kept = job_.folder().write(name + ".json", read_text(changed));
    return {"--plan", kept, "--cluster", cluster_};
  }

  static Words stages(int count) { return {"--stages", std::to_string(count)}; }

  void train(const std::string& run, int until, const Words& plan, bool resumes) const {
    Words words = settings();
    words.insert(words.end(), plan.begin(), plan.end());
    words.insert(words.end(), {"--stop-after", std::to_string(until)});
    if (resumes) words.insert(words.end(), {"--resume", "--allow-changes"});
    const Outcome outcome = job_.train(run, words);
    ASSERT_EQ(outcome.status, 0) << run << " until " << until << ": " << outcome.err;
  }

  [[nodiscard]] Hashes hashes(const std::string& run, int step) const {
    return tensor_hashes(job_.run_dir(run), step);
  }

  [[nodiscard]] Words losses(const std::string& run) const {
    return metric_column(job_.run_dir(run), "loss");
  }

  SmallJob job_;

 private:
  std::string cluster_;
};

TEST_F(CorrectedAllreducesRun, GoOnWithTheBitsOfAnUnbrokenRun) {
  for (const std::vector<int>& shares : {std::vector<int>{3, 1}, {2, 1, 1}}) {
    const std::string name = fmt::format("on-{}-", shares.size());
    const Words plan = replicas(name + "plan", shares);
    train(name + "whole", 24, plan, /*resumes=*/false);
    train(name + "broken", 7, plan, /*resumes=*/false);
    train(name + "broken", 15, plan, /*resumes=*/true);
    train(name + "broken", 24, plan, /*resumes=*/true);
    EXPECT_EQ(losses(name + "broken"), losses(name + "whole"));
    const Hashes expected = hashes(name + "whole", 24);
    EXPECT_EQ(hashes(name + "broken", 24), expected);
    EXPECT_TRUE(expected.contains("velocity.1/h.0.mlp.c_fc.weight"));
    EXPECT_TRUE(expected.contains("unsent.1/wte.weight"));
    EXPECT_FALSE(expected.contains("residual.0/wte.weight"));
  }
}

// The velocities and unsent values are moved into the optimizer's momentum, with the same result
// for any cuts. It stays there when later all-reduces use momentum correction again.
TEST_F(CorrectedAllreducesRun, HandOverToAnyOtherPlan) {
  const Words two = replicas("two-machines", {3, 1});
  for (const auto& [run, first, second] : {std::tuple("run", 1, 3), std::tuple("other", 3, 1)}) {
    train(run, 6, two, /*resumes=*/false);
    train(run, 12, stages(first), /*resumes=*/true);
    train(run, 18, stages(second), /*resumes=*/true);
    train(run, 24, replicas("three-machines", {1, 2, 1}), /*resumes=*/true);
  }
  EXPECT_EQ(hashes("run", 24), hashes("other", 24));
  EXPECT_FALSE(hashes("run", 12).contains("velocity.0/wte.weight"));
  EXPECT_TRUE(hashes("run", 24).contains("velocity.2/wte.weight"));
  train("whole", 24, two, /*resumes=*/false);
  EXPECT_NEAR(std::stod(losses("run").back()) / std::stod(losses("whole").back()), 1, 0.02);
}

}  // namespace
}  // namespace motley::test
