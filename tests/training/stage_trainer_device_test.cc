// StageTrainer on a device: what it waits for, transfers and reports. Counters and speed are those
// of the far device.
#include <dlfcn.h>

#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/far/far_device.h"
#include "tests/training/stage_training.h"

namespace motley {
namespace {

// A function of the far device; nullptr if the tests run on another device.
template <class Function>
Function* far_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// The far device's counters, if it is the tested device.
std::optional<MotleyFarCounters> far_counters() {
  if (tested_device().is_host()) return std::nullopt;
  const auto read = far_function<void(MotleyFarCounters*)>("motley_far_counters");
  if (read == nullptr) return std::nullopt;
  MotleyFarCounters now;
  read(&now);
  return now;
}

// Otherwise the device is idle while the host prepares the next operations.
TEST(StageTrainerOnDevice, WaitsForADeviceOnceAStep) {
  if (!far_counters()) GTEST_SKIP() << "waits are not counted";
  StageTraining alone(kAlone);
  expect_ok(alone.steps(1));
  const std::uint64_t before = far_counters()->host_waits;
  expect_ok(alone.steps(3));
  const int at_the_end_of_the_trace = alone.rank(0).clock == nullptr ? 0 : 1;
  EXPECT_EQ(far_counters()->host_waits - before, 3 + at_the_end_of_the_trace);
}

// A chain that ends in zstd is encoded only on the host, with the same values.
TEST(StageTrainerOnDevice, SendsWhatADeviceEncodesLikeWhatTheHostDoes) {
  constexpr std::uint64_t kBoundaryFloats = 16 * 32;

  struct Codec {
    std::string name;
    std::uint64_t saved_bytes;  // relative to the floats of a boundary
  };

  for (const auto& [codec, saved_bytes] :
       {Codec{"fp16", kBoundaryFloats * 2}, Codec{"bf16", kBoundaryFloats * 2},
        Codec{"int8", kBoundaryFloats * 3 - 4 * kBoundaryFloats / 128}}) {
    SCOPED_TRACE(codec);
    std::map<std::string, std::vector<float>> learned[2];
    std::uint64_t down[2] = {0, 0};
    std::uint64_t up[2] = {0, 0};
    for (const int by_host : {0, 1}) {
      StageTraining pipeline({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}},
                              .codec = by_host == 1 ? codec + "|zstd(1)" : codec});
      expect_ok(pipeline.steps(1));
      const auto before = far_counters();
      expect_ok(pipeline.steps(1));
      const auto after = far_counters();
      if (after) down[by_host] = after->bytes_from_device - before->bytes_from_device;
      if (after) up[by_host] = after->bytes_to_device - before->bytes_to_device;
      learned[by_host] = pipeline.parameters();
    }
    EXPECT_EQ(learned[0], learned[1]);
    const std::uint64_t crossing = far_counters() ? 2 * kMicroBatches : 0;
    EXPECT_EQ(down[1] - down[0], crossing * saved_bytes);
    EXPECT_EQ(up[1] - up[0], crossing * saved_bytes);
  }
}

// The host submits the whole batch to a slow device at once; the reported times are the device's.
TEST(StageTrainerOnDevice, TimesAreThoseOfTheDeviceThatComputes) {
  const auto slow_down = far_function<void(double)>("motley_far_slow_down");
  if (tested_device().is_host() || slow_down == nullptr) GTEST_SKIP() << "no far device";
  StageTraining alone(kAlone);
  if (alone.rank(0).clock == nullptr) GTEST_SKIP() << "its events have no times";
  expect_ok(alone.steps(2));
  alone.rank(0).times.clear();
  alone.rank(0).run_s.clear();
  const std::size_t first_span = alone.rank(0).trace.spans().size();
  constexpr double kOperation_s = 200e-6;
  slow_down(kOperation_s);
  expect_ok(alone.steps(3));
  slow_down(0);
  double compute_s = 0;
  double run_s = 0;
  for (std::size_t i = 0; i < alone.rank(0).times.size(); ++i) {
    const StepTimes& times = alone.rank(0).times[i];
    compute_s += times.compute_s;
    run_s += alone.rank(0).run_s[i];
    EXPECT_LT(times.wait_s.total(), 0.1 * alone.rank(0).run_s[i]);
  }
  EXPECT_GT(compute_s, 0.8 * run_s);
  EXPECT_GT(alone.rank(0).times.back().optimizer_s, 10 * kOperation_s);
  // Forward and backward actions follow each other: the time is not all attributed to the vote,
  // which waits for them.
  std::map<char, double> span_s;
  double end_s = 0;
  const auto& spans = alone.rank(0).trace.spans();
  for (auto span = spans.begin() + static_cast<std::ptrdiff_t>(first_span); span != spans.end();
       ++span) {
    span_s[span->name.front()] += span->duration_s;
    EXPECT_GE(span->start_s, end_s - 1e-6) << span->name;
    end_s = span->start_s + span->duration_s;
  }
  EXPECT_GT(span_s['F'], 3 * kMicroBatches * 20 * kOperation_s);
  EXPECT_GT(span_s['B'], span_s['F']);
  EXPECT_LT(span_s['V'], span_s['F']);
}

}  // namespace
}  // namespace motley
