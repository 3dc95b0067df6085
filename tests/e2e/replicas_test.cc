// Replicas share a step's micro-batches and converge as one device does.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

// docs/numerics.md: replicas add the same gradients in another order.
constexpr double kLoss = 1e-6;        // relative
constexpr double kParameters = 1e-3;  // relative to the largest

using Tensors = std::map<std::string, std::vector<float>>;

// The parameters of a checkpoint, from all of its files.
Tensors parameters_of(const std::filesystem::path& checkpoint) {
  Tensors tensors;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (!entry.path().filename().string().starts_with("model-")) continue;
    const std::string bytes = read_text(entry.path());
    std::uint64_t head_bytes = 0;
    std::memcpy(&head_bytes, bytes.data(), sizeof head_bytes);
    const Json head = Json::parse(bytes.substr(sizeof head_bytes, head_bytes));
    for (const auto& [name, tensor] : head.items()) {
      if (name == "__metadata__") continue;
      const auto begin = tensor["data_offsets"][0].get<std::size_t>();
      const auto end = tensor["data_offsets"][1].get<std::size_t>();
      std::vector<float>& values = tensors[name];
      values.resize((end - begin) / sizeof(float));
      std::memcpy(values.data(), bytes.data() + sizeof head_bytes + head_bytes + begin,
                  end - begin);
    }
  }
  return tensors;
}

class Replicas : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    single_ = std::make_unique<SmallJob>();
    ASSERT_EQ(single_->train("alone", {"--stages", "1"}).status, 0);
    ASSERT_EQ(single_->train("two", {"--stages", "2"}).status, 0);
    ASSERT_EQ(single_->train("three", {"--stages", "3"}).status, 0);
  }

  static void TearDownTestSuite() { single_.reset(); }

  // One chunk on two ranks, one of which computes three micro-batches.
  static std::string data_parallel() {
    return single_->changed_plan("two", [](Json& plan) {
      Json chunk = plan["chunks"][0];
      chunk["layer_count"] = 6;
      chunk["replicas"] = {{{"rank", 0}, {"micro_batches", 3}},
                           {{"rank", 1}, {"micro_batches", 1}}};
      plan["chunks"] = Json::array({chunk});
    });
  }

  // Two stages, the first on two ranks.
  static std::string shared_first_stage() {
    return single_->changed_plan("three", [](Json& plan) {
      Json first = plan["chunks"][0];
      Json last = plan["chunks"][2];
      first["layer_count"] = last["first_layer"];
      first["replicas"] = {{{"rank", 0}, {"micro_batches", 2}},
                           {{"rank", 1}, {"micro_batches", 2}}};
      plan["chunks"] = Json::array({first, last});
    });
  }

  // Two stages; the layer between them has a replica on both ranks.
  static std::string shared_layer() {
    return single_->changed_plan("three", [](Json& plan) {
      plan["ranks"].erase(2);
      plan["schedule"] = "split";
      Json& chunks = plan["chunks"];
      chunks[1]["replicas"] = {{{"rank", 0}, {"micro_batches", 1}},
                               {{"rank", 1}, {"micro_batches", 3}}};
      chunks[2]["replicas"][0]["rank"] = 1;
      for (Json& chunk : chunks) chunk["in_flight"] = chunk["queued_weights"] = 3;
    });
  }

  void expect_near_alone(const std::string& run) const {
    const auto losses = metric_column(job_.run_dir(run), "loss");
    const auto alone = metric_column(single_->run_dir("alone"), "loss");
    ASSERT_EQ(losses.size(), alone.size());
    for (std::size_t step = 0; step < alone.size(); ++step) {
      EXPECT_NEAR(std::stod(losses[step]) / std::stod(alone[step]), 1, kLoss) << step;
    }
    EXPECT_NE(losses.front(), losses.back()) << "nothing was learned";
    const Tensors expected = parameters_of(saved_by(*single_, "alone"));
    const Tensors tensors = parameters_of(saved_by(job_, run));
    ASSERT_EQ(tensors.size(), expected.size());
    for (const auto& [name, values] : expected) expect_near(tensors.at(name), values, name);
  }

  static std::filesystem::path saved_by(const SmallJob& job, const std::string& run) {
    return job.folder() / run / "checkpoints/step-000050";
  }

  static void expect_near(const std::vector<float>& values,
                          const std::vector<float>& expected,
                          const std::string& name) {
    ASSERT_EQ(values.size(), expected.size()) << name;
    double largest = 0;
    double difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
      difference = std::max(difference, std::abs(static_cast<double>(values[i]) - expected[i]));
    }
    EXPECT_LE(difference, kParameters * largest) << name;
  }

  // The last loss of two replicas on two machines whose gradients are encoded by `codec`, relative
  // to that of one device.
  double last_loss_with(const std::string& codec) const {
    const std::string path = single_->changed_plan("two", [&](Json& plan) {
      Json chunk = plan["chunks"][0];
      chunk["layer_count"] = 6;
      chunk["replicas"] = {{{"rank", 0}, {"micro_batches", 3}},
                           {{"rank", 1}, {"micro_batches", 1}}};
      plan["chunks"] = Json::array({chunk});
      plan["ranks"][0]["machine"] = "here";
      plan["ranks"][1]["machine"] = "there";
      plan["gradient_codec"] = codec;
    });
    const std::string cluster =
        job_.folder().write("two.toml",
                            "[network]\ntrusted = true\n"
                            "[[machine]]\nname = \"here\"\naddress = \"127.0.0.1\"\n"
                            "[[machine]]\nname = \"there\"\naddress = \"127.0.0.1\"\n");
    const Outcome outcome = job_.train(codec, {"--plan", path, "--cluster", cluster});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto losses = metric_column(job_.run_dir(codec), "loss");
    return std::stod(losses.back()) /
           std::stod(metric_column(single_->run_dir("alone"), "loss").back());
  }

  static inline std::unique_ptr<SmallJob> single_;  // runs "alone", "two", "three": no replicas
  SmallJob job_;
};

TEST_F(Replicas, OfTheWholeModelLearnWhatOneDeviceLearns) {
  const Outcome outcome = job_.train("run", {"--plan", data_parallel()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_near_alone("run");
}

TEST_F(Replicas, OfALayerBetweenStagesLearnWhatOneDeviceLearns) {
  const Outcome outcome = job_.train("run", {"--plan", shared_layer()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_near_alone("run");
}

TEST_F(Replicas, LearnNearlyTheSameThroughCompressedSums) {
  EXPECT_NEAR(last_loss_with("none"), 1, kLoss);
  const double rounded = last_loss_with("int4");
  EXPECT_NEAR(rounded, 1, 0.02);
  EXPECT_NE(rounded, 1) << "nothing was rounded";
}

TEST_F(Replicas, OfAStageLearnWhatOneDeviceLearns) {
  const Outcome outcome = job_.train("run", {"--plan", shared_first_stage()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_near_alone("run");
}

TEST_F(Replicas, SaveWhatAnyOtherPlanGoesOnFrom) {
  ASSERT_EQ(job_.train("run", {"--plan", data_parallel(), "--stop-after", "20"}).status, 0);
  const Outcome outcome =
      job_.train("run", {"--plan", shared_first_stage(), "--resume", "--allow-changes"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_near_alone("run");
}

// The planner may choose another plan for the same job, whose all-reduces round differently.
TEST_F(Replicas, KeepTheirPlanOnResume) {
  ASSERT_EQ(job_.train("whole", {"--plan", data_parallel()}).status, 0);
  ASSERT_EQ(job_.train("run", {"--plan", data_parallel(), "--stop-after", "20"}).status, 0);
  const Outcome outcome = job_.train("run", {"--stages", "2", "--resume"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("the run continues with"), std::string::npos) << outcome.err;
  EXPECT_EQ(job_.parameter_hash("run", 50), job_.parameter_hash("whole", 50));
}

TEST_F(Replicas, AKilledOneEndsTheRun) {
  RunningMotley run(
      job_.train_words("run", {"--plan", shared_first_stage(), "--set", "train.steps=1000000"}));
  ASSERT_TRUE(eventually([&] {
    const std::string text = read_text(job_.folder() / "run/metrics.jsonl");
    return std::ranges::count(text, '\n') >= 5;
  }));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 3U);
  ::kill(workers[1], SIGKILL);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("stage 0b (local) was killed by signal 9"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace motley::test
