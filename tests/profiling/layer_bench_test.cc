// Measurements of layers and the optimizer, on the processor and on a slowed far device.
#include "profiling/layers/layer_bench.h"

#include <dlfcn.h>

#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <c10/core/InferenceMode.h>

#include "models/kernels/torch_threads.h"
#include "profiling/layers/optimizer_bench.h"
#include "tests/support/far/far_device.h"
#include "tests/support/tested_device.h"

namespace motley {
namespace {

Job small_job() {
  Job job;
  job.config.model.kind = "gpt2";
  job.config.model.layers = 1;
  job.config.model.width = 32;
  job.config.model.heads = 4;
  job.config.model.context = 16;
  job.config.model.vocab = 61;
  return job;
}

// A function of the far device; nullptr if the tests run on another device.
template <class Function>
Function* far_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

class LayerBenchTest : public testing::Test {
 protected:
  LayerBenchTest() { set_compute_threads(1); }

  LayerBench::Measured measure(int layer, int samples = 2) {
    LayerBench bench(job_, model_, layer, device_);
    return bench.measure(samples, {0.3, 0.05}, [this] {
      ++runs_;
      on_run_();
    });
  }

  const c10::InferenceMode no_recording_;
  const Job job_ = small_job();
  const ModelSpec model_ = describe_model(job_.config.model).value();
  const ComputeDevice device_ = tested_device();
  int runs_ = 0;
  std::function<void()> on_run_ = [] {};
};

TEST_F(LayerBenchTest, TellsTheTimesAndBytesOfEachLayer) {
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
    runs_ = 0;
    const LayerSample sample = measure(layer).sample;
    EXPECT_EQ(sample.micro_batch, 2);
    EXPECT_GT(sample.forward_s, 0) << layer;
    EXPECT_GT(sample.backward_s, 0) << layer;
    EXPECT_LE(sample.split->input_s, sample.backward_s) << layer;
    EXPECT_GT(sample.saved_bytes, 0) << layer;
    EXPECT_GE(runs_, LayerBench::kRunsMin - 1);
  }
}

// A Mac's allocator, for example, reports nothing.
TEST_F(LayerBenchTest, TellsWhatADeviceTakesBesideWhatItKeepsWhetherItsAllocatorReportsOrNot) {
  const auto report = far_function<void(int)>("motley_far_report_memory");
  if (device_.is_host() || report == nullptr) GTEST_SKIP() << "no far device";
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
    const auto reported = static_cast<double>(measure(layer).sample.workspace_bytes);
    report(0);
    const auto shown = static_cast<double>(measure(layer).sample.workspace_bytes);
    report(1);
    EXPECT_GT(reported, 0) << layer;
    EXPECT_NEAR(shown, reported, 0.1 * reported) << layer;
  }
}

// Most operations of a run are the layer's; the others copy its input and create its gradient.
TEST_F(LayerBenchTest, CountsADevicesTimeAlone) {
  const auto slow_down = far_function<void(double)>("motley_far_slow_down");
  const auto read_counters = far_function<void(MotleyFarCounters*)>("motley_far_counters");
  if (device_.is_host() || slow_down == nullptr) GTEST_SKIP() << "no far device";
  if (!Stopwatch(device_).runs_asynchronously()) GTEST_SKIP() << "its events have no times";
  const auto counters = [&] {
    MotleyFarCounters now;
    read_counters(&now);
    return now;
  };
  std::vector<std::uint64_t> waits;  // [run]
  on_run_ = [&] { waits.push_back(counters().host_waits); };
  constexpr double kOperation_s = 100e-6;
  slow_down(kOperation_s);
  const MotleyFarCounters before = counters();
  const LayerSample slow = measure(1).sample;
  const MotleyFarCounters after = counters();
  slow_down(0);
  // One additional run measures memory.
  const double run_s =
      kOperation_s * static_cast<double>(after.operations - before.operations) / (runs_ + 1);
  EXPECT_NEAR(slow.forward_s + slow.backward_s, run_s, 0.25 * run_s);
  // The first run is timed separately; the following short runs are queued without a wait between
  // them.
  ASSERT_GE(waits.size(), 7U);
  EXPECT_EQ(waits[6], waits[1]);
}

TEST_F(LayerBenchTest, TheOptimizerTakesTimeForEachParameter) {
  const double small_s = measure_optimizer(job_.config.train, 1 << 12, device_) * (1 << 12);
  const double large_s = measure_optimizer(job_.config.train, 1 << 20, device_) * (1 << 20);
  EXPECT_GT(small_s, 0);
  EXPECT_GT(large_s, small_s);
}

}  // namespace
}  // namespace motley
