// Training on a device whose memory the host cannot access, alone and together with the processor.
// The far device (tests/support/far/far_device.h) computes with the processor's operations, but
// through other layer implementations than the processor's. Runs therefore agree up to the order
// of additions.
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

constexpr const char* kFar = R"("privateuseone:0")";
constexpr const char* kTwoFar = R"("privateuseone:0", "privateuseone:1")";
constexpr const char* kBoth = R"("cpu", "privateuseone:0")";

constexpr double kLoss = 1e-5;  // relative

class DeviceRun : public testing::Test {
 protected:
  DeviceRun() { ::setenv("MOTLEY_DEVICE_LIBRARY", MOTLEY_FAR_LIBRARY, /*overwrite=*/1); }

  ~DeviceRun() override {
    ::unsetenv("MOTLEY_DEVICE_LIBRARY");
    ::unsetenv("MOTLEY_FAR_MIB");
    ::unsetenv("MOTLEY_FAR_HANGS_AFTER");
  }

  // A cluster of one machine with these devices, a TOML list.
  [[nodiscard]] std::string cluster_of(const std::string& devices) const {
    return job_.folder().write(std::to_string(std::hash<std::string>()(devices)) + ".toml",
                               cluster_text(devices));
  }

  static std::string cluster_text(const std::string& devices) {
    return "[[machine]]\nname = \"desk\"\nthreads = 1\ndevices = [" + devices + "]\n";
  }

  // Options of a run on such a cluster, with an existing profile of its devices.
  [[nodiscard]] Words on(const std::string& devices, const Words& more = {}) const {
    Words words = SmallJob::measured_with({}, cluster_text(devices));
    words.insert(words.end(), {"--cluster", cluster_of(devices)});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void expect_trains(const std::string& run, const Words& words) const {
    const Outcome outcome = job_.train(run, words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  [[nodiscard]] std::vector<double> losses(const std::string& run) const {
    std::vector<double> numbers;
    for (const std::string& text : metric_column(job_.run_dir(run), "loss")) {
      numbers.push_back(std::stod(text));
    }
    return numbers;
  }

  void expect_close(const std::string& run, const std::string& other) const {
    const std::vector<double> a = losses(run);
    const std::vector<double> b = losses(other);
    ASSERT_EQ(a.size(), 50U);
    ASSERT_EQ(b.size(), 50U);
    for (std::size_t step = 0; step < a.size(); ++step) {
      EXPECT_NEAR(a[step], b[step], kLoss * std::abs(b[step])) << "step " << step + 1;
    }
  }

  SmallJob job_;
};

TEST_F(DeviceRun, LearnsWhatTheProcessorLearns) {
  expect_trains("processor", {"--stages", "1"});
  expect_trains("device", on(kFar));
  expect_close("device", "processor");

  expect_trains("pipeline", on(kBoth, {"--stages", "2"}));
  expect_close("pipeline", "processor");
  const Json plan = Json::parse(read_text(job_.run_dir("pipeline") + "/plan.json"));
  EXPECT_NE(plan["ranks"][0]["device"], plan["ranks"][1]["device"]);

  const std::string replicas = job_.changed_plan("pipeline", [](Json& changed) {
    Json chunk = changed["chunks"][0];
    chunk["layer_count"] = 6;
    chunk["replicas"] = {{{"rank", 0}, {"micro_batches", 2}}, {{"rank", 1}, {"micro_batches", 2}}};
    changed["chunks"] = Json::array({chunk});
  });
  expect_trains("replicas", {"--cluster", cluster_of(kBoth), "--plan", replicas});
  expect_close("replicas", "processor");
}

// The processor and the device as islands, beside two processors; the start is the device's.
TEST_F(DeviceRun, TrainsInRoundsLikeProcessors) {
  expect_trains("two", {"--stages", "2", "--stop-after", "1"});
  expect_trains("mixed", on(kBoth, {"--stages", "2", "--stop-after", "1"}));
  const auto as_islands = [this](const std::string& run) {
    return job_.changed_plan(run, [](Json& plan) {
      Json chunk = plan["chunks"][0];
      chunk["layer_count"] = 6;
      chunk["replicas"] = {{{"rank", 0}, {"micro_batches", 2}},
                           {{"rank", 1}, {"micro_batches", 2}}};
      plan["chunks"] = Json::array({chunk});
      plan["rounds"] = {{"islands", {{0}, {1}}}, {"steps", 5},      {"start_steps", 7},
                        {"start_island", 1},     {"codec", "none"}, {"outer_lr", 0.7},
                        {"outer_momentum", 0.6}};
    });
  };
  expect_trains("processors", {"--plan", as_islands("two")});
  expect_trains("both", {"--cluster", cluster_of(kBoth), "--plan", as_islands("mixed")});
  expect_close("both", "processors");
}

// One end encodes on the device and the other decodes on the processor, and vice versa. The values
// are the same as if the host encodes everything, which zstd enforces.
TEST_F(DeviceRun, ExchangesMessagesThatTheDeviceMakes) {
  expect_trains("pipeline", on(kBoth, {"--stages", "2"}));
  for (const std::string codec : {"fp16", "int8"}) {
    const auto train_with = [&](const std::string& run, const std::string& chain) {
      const std::string plan = job_.changed_plan(
          "pipeline", [&](Json& changed) { changed["chunks"][0]["codec"] = chain; });
      expect_trains(run, {"--cluster", cluster_of(kBoth), "--plan", plan});
      return job_.parameter_hash(run, 50);
    };
    EXPECT_EQ(train_with(codec, codec), train_with(codec + "-host", codec + "|zstd(1)")) << codec;
  }
}

TEST_F(DeviceRun, GivesTheSameBitsForAnyCut) {
  expect_trains("one", on(kFar));
  for (const char* schedule : {"gpipe", "1f1b", "split"}) {
    expect_trains(schedule, on(kTwoFar, {"--stages", "2", "--set",
                                         std::string("parallel.schedule=") + schedule}));
    EXPECT_EQ(job_.parameter_hash(schedule, 50), job_.parameter_hash("one", 50)) << schedule;
  }
  const std::string again = job_.changed_plan("1f1b", [](Json& plan) {
    for (Json& chunk : plan["chunks"]) chunk["recompute"] = true;
  });
  expect_trains("again", {"--cluster", cluster_of(kTwoFar), "--plan", again});
  EXPECT_EQ(job_.parameter_hash("again", 50), job_.parameter_hash("one", 50));
}

TEST_F(DeviceRun, GoesOnOnAnotherDevice) {
  expect_trains("whole", on(kFar));
  expect_trains("parts", on(kFar, {"--stop-after", "20"}));
  expect_trains("parts", {"--resume", "--stages", "2"});
  expect_close("parts", "whole");
  expect_trains("back", {"--stages", "2", "--stop-after", "20"});
  expect_trains("back", on(kFar, {"--resume"}));
  expect_close("back", "whole");
}

TEST_F(DeviceRun, IsRefusedWhereTheDeviceIsNot) {
  Outcome outcome = job_.train("none", {"--cluster", cluster_of("\"privateuseone:7\"")});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no device 'privateuseone:7' on this machine"));
  EXPECT_THAT(outcome.err, HasSubstr("cpu, privateuseone:0, privateuseone:1"));

  outcome = job_.train("none", {"--cluster", cluster_of("\"mps\"")});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("only Macs have it"));

  outcome = job_.train("none", {"--cluster", cluster_of("\"tpu:0\"")});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("tpu:0"));
}

TEST_F(DeviceRun, SaysWhichLayerTheDeviceHasNoRoomForWhileItIsMeasured) {
  ::setenv("MOTLEY_FAR_MIB", "2", /*overwrite=*/1);
  const Outcome outcome = job_.train("full", {"--cluster", cluster_of(kFar), "--set",
                                              "train.micro_batch=8", "--set", "model.context=256"});
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(
      outcome.err,
      AllOf(HasSubstr("privateuseone:0 has too little memory for h.0.attn at 8 samples"),
            HasSubstr("2.0 MiB were free at the start"), HasSubstr("train.micro_batch smaller")));
}

// The error names the operation of the device, not the place at which the host waits, since the
// host has submitted the whole batch. The rank on the processor only knows that no message
// arrived. With a large batch the host fills the device's queue and blocks inside LibTorch. With a
// plan that gives the device little work the run is long enough to reach the hang.
TEST_F(DeviceRun, ADeviceThatHangsEndsTheRun) {
  const std::vector<std::pair<std::string, Words>> runs = {
      {"one", on(kFar)},
      {"both", on(kBoth, {"--stages", "2", "--set", "train.steps=5000"})},
      {"large", on(kFar, {"--set", "train.global_batch=64"})}};
  for (const auto& [run, words] : runs) {
    Words hasty = words;
    hasty.insert(hasty.end(), {"--set", "comm.timeout_s=2"});
    ::setenv("MOTLEY_FAR_HANGS_AFTER", "3000", /*overwrite=*/1);
    const Outcome outcome = job_.train(run, hasty);
    ::unsetenv("MOTLEY_FAR_HANGS_AFTER");
    EXPECT_EQ(outcome.status, 1) << run << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("waiting for device privateuseone:0 to finish ")) << run;
    EXPECT_THAT(outcome.err, HasSubstr("timed out after 2 s")) << run;
    EXPECT_THAT(outcome.err, HasSubstr("nvidia-smi")) << run;
  }
}

// The plan includes temporary memory of the layers, also of products in bf16 and fp16. The model
// is small because LibTorch is slow at such products on some processors.
TEST_F(DeviceRun, NeedsNoMoreMemoryThanItsPlanSays) {
  const std::string cluster = cluster_of(kFar);
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    const Words words = {"--cluster", cluster,
                         "--set",     "train.precision=" + precision,
                         "--set",     "train.steps=3",
                         "--set",     "profile.seconds=3",
                         "--set",     "train.warmup_steps=1",
                         "--set",     "train.micro_batch=8",
                         "--set",     "train.global_batch=8",
                         "--set",     "model.layers=1",
                         "--set",     "model.width=256",
                         "--set",     "model.heads=8",
                         "--set",     "model.context=64",
                         "--set",     "model.vocab=4096"};
    expect_trains(precision, words);
    const std::string plan = job_.run_dir(precision) + "/plan.json";
    const Json rank = Json::parse(read_text(plan)).at("ranks").at(0);
    const auto bytes = rank.at("memory_bytes").get<std::int64_t>();
    ::setenv("MOTLEY_FAR_MIB", std::to_string((bytes >> 20) + 1).c_str(), /*overwrite=*/1);
    Words again = words;
    again.insert(again.end(), {"--plan", plan});
    expect_trains(precision + "-planned", again);
    ::unsetenv("MOTLEY_FAR_MIB");
  }
}

// The plan was made for more memory than there is now.
TEST_F(DeviceRun, SaysWhatADeviceHoldsThatHasNoRoomWhileItTrains) {
  const Words words = {"--cluster", cluster_of(kFar), "--set", "train.micro_batch=8"};
  expect_trains("whole", words);
  Words planned = words;
  planned.insert(planned.end(), {"--plan", job_.run_dir("whole") + "/plan.json"});
  ::setenv("MOTLEY_FAR_MIB", "1", /*overwrite=*/1);
  const Outcome outcome = job_.train("full", planned);
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("privateuseone:0 has too little memory for "),
                    HasSubstr("the layers embed to head take"),
                    HasSubstr("1.0 MiB were free at its start"), HasSubstr("Tried to allocate"),
                    HasSubstr("parallel.recompute"), Not(HasSubstr("at most 70% memory"))));
}

class StoppedDeviceRun : public DeviceRun, public testing::WithParamInterface<int> {};

TEST_P(StoppedDeviceRun, GoesOnToTheSameBits) {
  const Words words = on(kFar, {"--set", "train.steps=150"});
  expect_trains("straight", words);
  RunningMotley run(job_.train_words("stopped", words));
  ASSERT_TRUE(
      eventually([&] { return metric_column(job_.run_dir("stopped"), "step").size() >= 5; }));
  ASSERT_EQ(::kill(run.pid(), GetParam()), 0);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 128 + GetParam()) << outcome.err;
  const auto steps = metric_column(job_.run_dir("stopped"), "step");
  ASSERT_LT(steps.size(), 150U) << "it was too quick to be interrupted";
  EXPECT_THAT(outcome.err, HasSubstr("after step " + steps.back() + " was saved"));
  const std::string command = last_line(outcome.err);
  EXPECT_THAT(command, AllOf(HasSubstr("MOTLEY_DEVICE_LIBRARY="), HasSubstr("--resume")));
  ::unsetenv("MOTLEY_DEVICE_LIBRARY");  // the command sets it
  ASSERT_EQ(run_in_shell(command, ""), 0) << command;
  EXPECT_EQ(losses("stopped"), losses("straight"));
  EXPECT_EQ(job_.parameter_hash("stopped", 150), job_.parameter_hash("straight", 150));
}

INSTANTIATE_TEST_SUITE_P(, StoppedDeviceRun, testing::Values(SIGINT, SIGTERM));

}  // namespace
}  // namespace motley::test
