// Training in bf16 and fp16: close to fp32, the same bits for any cut, from checkpoints of another
// precision, and refused if no device supports the dtype.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr double kLoss = 0.01;  // relative, of the last step
constexpr const char* kQuickly = "profile.seconds=2";

bool processor_has_bf16() {
  const Json found = Json::parse(motley({"devices", "--json"}).out);
  const Json& types = found.at("machines").at("local").at("devices").at(0).at("types");
  return std::ranges::find(types, "bf16") != types.end();
}

class PrecisionRun : public testing::Test {
 protected:
  PrecisionRun() { ::setenv("MOTLEY_DEVICE_LIBRARY", MOTLEY_FAR_LIBRARY, /*overwrite=*/1); }

  ~PrecisionRun() override { ::unsetenv("MOTLEY_DEVICE_LIBRARY"); }

  static std::string cluster_text(const std::string& devices) {
    return "[[machine]]\nname = \"desk\"\nthreads = 1\ndevices = [" + devices + "]\n";
  }

  // Trains in that precision, on those devices.
  Outcome train(const std::string& run,
                const std::string& precision,
                const std::string& devices,
                std::vector<std::string> words = {}) const {
    words.insert(words.end(),
                 {"--set", "train.precision=" + precision, "--set", kQuickly, "--cluster",
                  job_.folder().write("cluster.toml", cluster_text(devices))});
    return job_.train(run, words);
  }

  // With the earlier profile, if there is one.
  void expect_trains(const std::string& run,
                     const std::string& precision,
                     const std::string& devices,
                     std::vector<std::string> words = {}) const {
    std::ranges::copy(
        SmallJob::measured_with({"train.precision=" + precision, kQuickly}, cluster_text(devices)),
        std::back_inserter(words));
    const Outcome outcome = train(run, precision, devices, words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  [[nodiscard]] double last_loss(const std::string& run) const {
    return std::stod(metric_column(job_.run_dir(run), "loss").back());
  }

  void expect_near_fp32(const std::string& run) const {
    ASSERT_EQ(metric_column(job_.run_dir(run), "loss").size(), 50U);
    EXPECT_NEAR(last_loss(run), last_loss("fp32"), kLoss * last_loss("fp32"));
    EXPECT_NE(last_loss(run), last_loss("fp32"));
  }

  SmallJob job_;
};

constexpr const char* kCpu = R"("cpu")";
constexpr const char* kTwoCpus = R"("cpu", "cpu")";
constexpr const char* kFar = R"("privateuseone:0")";
constexpr const char* kTwoFar = R"("privateuseone:0", "privateuseone:1")";
constexpr const char* kBoth = R"("cpu", "privateuseone:0")";

TEST_F(PrecisionRun, OfTheProcessorStaysNearFp32) {
  if (!processor_has_bf16()) GTEST_SKIP() << "this processor has no bf16";
  expect_trains("fp32", "fp32", kCpu);
  expect_trains("one", "bf16", kCpu);
  expect_near_fp32("one");
  expect_trains("two", "bf16", kTwoCpus, {"--stages", "2"});
  EXPECT_EQ(job_.parameter_hash("two", 50), job_.parameter_hash("one", 50));
}

TEST_F(PrecisionRun, OfADeviceStaysNearFp32ForAnyCut) {
  expect_trains("fp32", "fp32", kFar);
  for (const char* precision : {"bf16", "fp16"}) {
    expect_trains(precision, precision, kFar);
    expect_near_fp32(precision);
    const std::string two = std::string(precision) + "-two";
    expect_trains(two, precision, kTwoFar, {"--stages", "2", "--set", "parallel.schedule=split"});
    EXPECT_EQ(job_.parameter_hash(two, 50), job_.parameter_hash(precision, 50));
  }
  EXPECT_EQ(metric_column(job_.run_dir("fp16"), "gradient_scale").size(), 50U);
}

TEST_F(PrecisionRun, GoesOnExactlyAndInAnotherPrecision) {
  expect_trains("fp32", "fp32", kFar);
  expect_trains("whole", "fp16", kFar);
  expect_trains("parts", "fp16", kFar, {"--stop-after", "20"});
  const std::string checkpoint = job_.run_dir("parts") + "/checkpoints/step-000020";
  const Json manifest = Json::parse(read_text(checkpoint + "/manifest.json"));
  EXPECT_EQ(manifest["gradient_scale"]["value"], 512);  // 2^16 / (8 samples of 16 tokens)
  EXPECT_THAT(motley({"ckpt", "show", checkpoint}).out, HasSubstr("gradient scale"));
  expect_trains("parts", "fp16", kFar, {"--resume"});
  EXPECT_EQ(job_.parameter_hash("parts", 50), job_.parameter_hash("whole", 50));

  expect_trains("moved", "fp16", kFar, {"--stop-after", "20"});
  const Outcome refused = train("moved", "bf16", kFar, {"--resume"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("train.precision"));
  expect_trains("moved", "bf16", kFar, {"--resume", "--allow-changes", "--stop-after", "35"});
  expect_trains("moved", "fp32", kCpu, {"--resume", "--allow-changes"});
  expect_near_fp32("moved");
}

TEST_F(PrecisionRun, SaysWhoComputesInFp32) {
  // Both stages have matrix products.
  const std::vector<std::string> half = {"--set", "parallel.cuts=[3]"};
  expect_trains("fp32", "fp32", kBoth, half);
  const Outcome outcome = train("mixed", "fp16", kBoth, half);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("desk (cpu): no fp16 there, so it computes in fp32"));
  EXPECT_THAT(outcome.err, ContainsRegex("warning: stage . \\(desk\\): no fp16 there"));
  const char* const dtypes = "fp16 on desk/privateuseone:0; fp32 on desk/cpu";
  EXPECT_THAT(outcome.out, HasSubstr(std::string("dtype     ") + dtypes));
  EXPECT_THAT(outcome.out, HasSubstr(std::string("dtype       ") + dtypes));
  expect_near_fp32("mixed");
  EXPECT_THAT(motley({"report", job_.run_dir("mixed")}).out,
              AllOf(ContainsRegex("products in +fp16"), ContainsRegex("products in +fp32")));
}

TEST_F(PrecisionRun, SaysWhatWasComputedIn) {
  const Outcome outcome = train("bf16", "bf16", kFar, {"--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out).at("numbers"), Json::array({"bf16"}));
  const Json plan = Json::parse(read_text(job_.run_dir("bf16") + "/plan.json"));
  EXPECT_EQ(plan.at("ranks")[0].at("numbers"), "bf16");
  // The plan can be used with another precision, but its predictions are not shown.
  const Outcome other =
      train("fp32", "fp32", kFar, {"--plan", job_.run_dir("bf16") + "/plan.json", "--quiet"});
  ASSERT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("the plan was made for train.precision = \"bf16\""));
}

TEST_F(PrecisionRun, TakesNoProfileOfAnotherPrecision) {
  expect_trains("fp32", "fp32", kFar);
  const Outcome outcome = train("bf16", "bf16", kFar, job_.as_measured_for("fp32"));
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("it was measured in fp32"));
}

TEST_F(PrecisionRun, IsRefusedWhereNoDeviceHasTheNumbers) {
  const Outcome outcome = train("none", "fp16", kCpu);
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no device supports it"));
  EXPECT_THAT(outcome.err, HasSubstr("leave train.precision at \"fp32\""));
  EXPECT_THAT(outcome.err,
              HasSubstr(processor_has_bf16() ? "desk (cpu), which computes in fp32 and bf16"
                                             : "desk (cpu), which computes in fp32"));
  EXPECT_FALSE(std::filesystem::exists(job_.run_dir("none") + "/plan.json"));
}

// The planner leaves out the device that supports it.
TEST_F(PrecisionRun, IsRefusedWhereNoStageOfThePlanHasTheNumbers) {
  const std::string cluster = job_.folder().write(
      "two.toml",
      "[[machine]]\nname = \"desk\"\naddress = \"127.0.0.1\"\n"
      "[[machine]]\nname = \"box\"\naddress = \"127.0.0.1\"\ndevices = [\"privateuseone:0\"]\n");
  const std::vector<std::string> words = {
      "--cluster", cluster, "--set", "train.precision=fp16", "--set", "profile.seconds=2",
      "--stages",  "1",     "--pin", "layer 0 on desk"};
  const Outcome outcome = job_.train("none", words);
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no stage of the plan supports it, given by --set"),
                                 HasSubstr("box (privateuseone:0)"),
                                 HasSubstr("leave desk (cpu) out of the cluster file")));
  EXPECT_FALSE(std::filesystem::exists(job_.run_dir("none") + "/plan.json"));
  // With a given plan the workers refuse it.
  expect_trains("fp32", "fp32", kCpu);
  const Outcome planned =
      train("planned", "fp16", kCpu, {"--plan", job_.run_dir("fp32") + "/plan.json"});
  EXPECT_EQ(planned.status, 3) << planned.err;
  EXPECT_THAT(planned.err, HasSubstr("no device supports it"));
}

}  // namespace
}  // namespace motley::test
