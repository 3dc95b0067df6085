// A run resumes from a checkpoint of any plan with any other plan.
//
// The tests compare the hash of every tensor of the checkpoints, parameters and optimizer state,
// for each guarantee of docs/numerics.md:
//   cuts       stages without replicas have the same bits as an uninterrupted run on any of them;
//   numbering  a plan with replicas and compressed all-reduces has the same bits if its ranks have
//              other numbers and its machines other names, as long as the replicas of a chunk keep
//              their order. It is compared with a run that was interrupted at the same steps:
//              residuals are added at the first all-reduce after a resume, so an uninterrupted run
//              has other bits;
//   both       the residuals do not depend on the cuts of the plan that takes them over.
// Plans with other replicas are not compared: their all-reduces round differently.
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

constexpr int kStepsEach = 5;
constexpr const char* kDropout = "model.dropout=0.1";

bool is_residual(const std::string& tensor) {
  return tensor.starts_with("residual.");
}

class AnyPlan : public testing::Test {
 protected:
  [[nodiscard]] static Words stages(int count) {
    Words words = SmallJob::measured_with({kDropout});
    words.insert(words.end(), {"--stages", std::to_string(count)});
    return words;
  }

  // Trains with each plan in turn, five steps each.
  void train_by_turns(const std::string& run, const std::vector<Words>& plans) const {
    int stop = 0;
    for (const Words& plan : plans) {
      Words words = {"--set", fmt::format("train.steps={}", 5 * kStepsEach), "--set",
                     "checkpoint.keep=0", "--stop-after"};
      words.push_back(std::to_string(stop += kStepsEach));
      words.insert(words.end(), plan.begin(), plan.end());
      if (stop > kStepsEach) words.insert(words.end(), {"--resume", "--allow-changes"});
      const Outcome outcome = job_.train(run, words);
      ASSERT_EQ(outcome.status, 0) << run << " until " << stop << ": " << outcome.err;
    }
  }

  [[nodiscard]] Hashes hashes(const std::string& run, int step) const {
    return tensor_hashes(job_.run_dir(run), step);
  }

  [[nodiscard]] Hashes hashes_but_residuals(const std::string& run, int step) const {
    Hashes left = hashes(run, step);
    std::erase_if(left, [](const auto& tensor) { return is_residual(tensor.first); });
    return left;
  }

  SmallJob job_;
};

TEST_F(AnyPlan, OfOtherCutsGoesOnWithTheBitsOfAnUnbrokenRun) {
  Words unbroken = stages(2);
  unbroken.insert(unbroken.end(), {"--set", "train.steps=25"});
  ASSERT_EQ(job_.train("unbroken", unbroken).status, 0);
  train_by_turns("run", {stages(1), stages(2), stages(3), stages(2), stages(1)});
  EXPECT_EQ(metric_column(job_.run_dir("run"), "loss"),
            metric_column(job_.run_dir("unbroken"), "loss"));
  EXPECT_EQ(hashes("run", 25), hashes("unbroken", 25));
  EXPECT_TRUE(hashes("run", 25).contains("exp_avg_sq/wte.weight"));
}

// Two stages on two machines each; gradients between machines are rounded to int4.
class ReplicatedPlan : public AnyPlan {
 protected:
  struct Numbering {
    std::vector<int> first;             // ranks that hold chunk 0
    std::vector<int> last;              // those of chunk 1
    std::vector<std::string> machines;  // [Rank]
  };

  void SetUp() override {
    ASSERT_EQ(job_.train("two", {"--stages", "2", "--stop-after", "1"}).status, 0);
    cluster_ = job_.folder().write("cluster.toml",
                                   "[network]\ntrusted = true\n"
                                   "[[machine]]\nname = \"here\"\naddress = \"127.0.0.1\"\n"
                                   "[[machine]]\nname = \"there\"\naddress = \"127.0.0.1\"\n");
    plain_ = plan_of("plain", {{0, 1}, {2, 3}, {"here", "there", "here", "there"}});
    // Other rank numbers and other machines; each machine has its ranks in the same order.
    dealt_ = plan_of("dealt", {{0, 2}, {1, 3}, {"there", "there", "here", "here"}});
    // The ranks of the last stage come first.
    turned_ = plan_of("turned", {{2, 3}, {0, 1}, {"there", "here", "there", "here"}});
  }

  // The command-line options for a plan.
  [[nodiscard]] Words plan_of(const std::string& name, const Numbering& numbering) const {
    const std::string changed = job_.changed_plan("two", [&](Json& plan) {
      const auto replicas = [](const std::vector<int>& ranks) {
        Json list = Json::array();
        for (const int rank : ranks) list.push_back({{"rank", rank}, {"micro_batches", 2}});
        return list;
      };
      const Json rank = plan["ranks"][0];
      plan["ranks"] = Json::array();
      for (const std::string& machine : numbering.machines) {
        plan["ranks"].push_back(rank);
        plan["ranks"].back()["machine"] = machine;
      }
      plan["chunks"][0]["replicas"] = replicas(numbering.first);
      plan["chunks"][1]["replicas"] = replicas(numbering.last);
      plan["gradient_codec"] = "int4";
    });
    const std::string kept = job_.folder().write(name + ".json", read_text(changed));
    return {"--plan", kept, "--cluster", cluster_, "--set", kDropout};
  }

  Words plain_;
  Words dealt_;
  Words turned_;

 private:
  std::string cluster_;
};

TEST_F(ReplicatedPlan, GoesOnWithTheSameBitsWhateverNumbersItsRanksHave) {
  train_by_turns("same", {plain_, plain_, plain_, plain_});
  train_by_turns("other", {plain_, dealt_, turned_, plain_});
  const Hashes same = hashes("same", kStepsEach);
  EXPECT_TRUE(same.contains("residual.1/h.0.mlp.c_fc.weight"));
  EXPECT_TRUE(same.contains("residual.3/wte.weight")) << "two machines, each with both ends";
  // No tensor name depends on a rank, so the residuals have the same names too.
  EXPECT_EQ(hashes("other", 2 * kStepsEach), hashes("same", 2 * kStepsEach));
  EXPECT_EQ(hashes_but_residuals("other", 3 * kStepsEach),
            hashes_but_residuals("same", 3 * kStepsEach));
  // The order of a machine's ranks decides which of them reduces a slice of the tied parameter.
  EXPECT_EQ(hashes("other", 4 * kStepsEach), hashes("same", 4 * kStepsEach));
  EXPECT_EQ(metric_column(job_.run_dir("other"), "loss"),
            metric_column(job_.run_dir("same"), "loss"));
}

TEST_F(ReplicatedPlan, HandsWhatItOwesToAnyCuts) {
  train_by_turns("run", {plain_, stages(1), stages(3), turned_});
  train_by_turns("other", {plain_, stages(3), stages(1), plain_});
  EXPECT_EQ(hashes("run", 2 * kStepsEach), hashes("other", 2 * kStepsEach));
  EXPECT_EQ(hashes("run", 3 * kStepsEach), hashes("other", 3 * kStepsEach));
  EXPECT_EQ(hashes_but_residuals("run", 4 * kStepsEach),
            hashes_but_residuals("other", 4 * kStepsEach));
}

}  // namespace
}  // namespace motley::test
