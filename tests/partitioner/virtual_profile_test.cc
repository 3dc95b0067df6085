#include "partitioner/cost/virtual_profile.h"

#include <gtest/gtest.h>

#include "partitioner/search/simulate_plan.h"
#include "plan/cluster/device_models.h"
#include "plan/cluster/virtual_numbers.h"
#include "tests/support/property.h"

namespace motley {
namespace {

ModelConfig gpt2(int layers, int width) {
  ModelConfig config;
  config.kind = "gpt2";
  config.layers = layers;
  config.width = width;
  config.heads = 4;
  config.context = 64;
  config.vocab = 1000;
  return config;
}

Cluster one_machine(const VirtualSpeed& speed) {
  Cluster cluster;
  Machine& machine = cluster.machines.emplace_back();
  machine.name = "m1";
  machine.devices = {"virtual"};
  machine.memory_gib = 1024;
  machine.virtual_speed = speed;
  return cluster;
}

Profile profile_of(const ModelSpec& model, const VirtualSpeed& speed, const VirtualJob& job) {
  DeviceProfile device = virtual_profile(model, speed, job, {1, 4});
  device.machine = "m1";
  device.device = "virtual";
  device.codecs["none"] = CodecSample{};
  return {{std::move(device)}};
}

// The simulated time of the step that the planner chooses for one such machine.
double simulated_step_s(const ModelSpec& model, const VirtualSpeed& speed, const VirtualJob& job) {
  const Cluster cluster = one_machine(speed);
  const Profile profile = profile_of(model, speed, job);
  PlanOptions options;
  options.global_batch = job.global_batch;
  options.process_state.moments_per_parameter = job.moments_per_parameter;
  const auto plan = make_plan(model, cluster, profile, options);
  EXPECT_TRUE(plan.ok()) << describe(plan.error());
  const auto simulated = simulate_plan(*plan, model, cluster, profile, options);
  EXPECT_TRUE(simulated.ok()) << describe(simulated.error());
  return simulated->step.step_s;
}

RC_GTEST_PROP(VirtualProfile, LetsAModelAloneReachItsTokensPerSecond, ()) {
  const ModelSpec model = describe_model(gpt2(*rc::gen::inRange(1, 5), 64)).value();
  const VirtualJob job{.global_batch = 1 << *rc::gen::inRange(0, 6), .moments_per_parameter = 2};
  const VirtualSpeed speed{.tokens_per_s = *rc::gen::element(30.0, 2e4, 5e6)};
  const double tokens_per_s = static_cast<double>(model.tokens_per_sample) * job.global_batch /
                              simulated_step_s(model, speed, job);
  RC_ASSERT(std::abs(tokens_per_s / speed.tokens_per_s - 1) < 0.01);
}

TEST(VirtualProfile, DividesOperationsBySustainedOnes) {
  const ModelSpec model = describe_model(gpt2(2, 64)).value();
  const DeviceProfile device = virtual_profile(model, {.gflops = 50}, {}, {2});
  const LayerSpec& mlp = model.layers[2];
  const LayerSample& sample = device.layers.at(mlp.signature).front();
  EXPECT_DOUBLE_EQ(sample.forward_s, 2 * mlp.forward_flops_per_sample / 50e9);
  EXPECT_DOUBLE_EQ(sample.backward_s, 2 * sample.forward_s);
  EXPECT_DOUBLE_EQ(sample.backward_input_s(), sample.forward_s);
  EXPECT_DOUBLE_EQ(sample.backward_weight_s(), sample.forward_s);
}

// A frozen layer has no product for weight gradients, the first one none for its input's gradient.
TEST(VirtualProfile, TimesThePartsOfBackwardByTheirOwnOperations) {
  ModelSpec model = describe_model(gpt2(2, 64)).value();
  LayerSpec& frozen = model.layers[2];
  frozen.signature += " frozen";
  frozen.weight_part_flops_per_sample = 0;
  const DeviceProfile device = virtual_profile(model, {.gflops = 50}, {}, {2});
  const LayerSample& sample = device.layers.at(frozen.signature).front();
  EXPECT_DOUBLE_EQ(sample.backward_s, sample.forward_s);
  EXPECT_DOUBLE_EQ(sample.backward_input_s(), sample.forward_s);
  EXPECT_EQ(sample.backward_weight_s(), 0);
  EXPECT_GT(device.layers.at(model.layers[4].signature).front().backward_weight_s(), 0);
}

TEST(VirtualProfile, CoversEveryLayerAtEverySize) {
  const ModelSpec model = describe_model(gpt2(3, 64)).value();
  const DeviceProfile device = virtual_profile(model, {.gflops = 50}, {}, {1, 8});
  for (const LayerSpec& layer : model.layers) {
    const auto& samples = device.layers.at(layer.signature);
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[0].micro_batch, 1);
    EXPECT_EQ(samples[1].micro_batch, 8);
    EXPECT_EQ(samples[1].saved_bytes, 8 * samples[0].saved_bytes);
    EXPECT_TRUE(samples[0].split.has_value());
  }
}

// In bf16 a device saves values of two bytes beside its layers' inputs and norms in fp32, and holds
// a rounded copy of the parameters; its times follow from its rate alone.
TEST(VirtualProfile, CountsRoundedValues) {
  const ModelSpec model = describe_model(gpt2(2, 64)).value();
  const DeviceProfile fp32 = virtual_profile(model, {.gflops = 50}, {}, {2});
  const DeviceProfile bf16 = virtual_profile(
      model, {.gflops = 50}, {.product_bytes = 2, .rounds_intermediates = true}, {2});
  EXPECT_EQ(fp32.rounded_bytes_per_parameter, 0);
  EXPECT_EQ(bf16.rounded_bytes_per_parameter, 2);
  EXPECT_EQ(bf16.optimizer_s_per_parameter, fp32.optimizer_s_per_parameter);
  const std::string& mlp = model.layers[2].signature;
  const LayerSample& wide = fp32.layers.at(mlp).front();
  const LayerSample& rounded = bf16.layers.at(mlp).front();
  constexpr std::int64_t kValues = 5 * 64 * 64;  // of a sample
  EXPECT_EQ(rounded.saved_bytes, wide.saved_bytes - 2 * 2 * kValues);
  EXPECT_EQ(rounded.split->queued_bytes, wide.split->queued_bytes / 2);
  EXPECT_EQ(rounded.forward_s, wide.forward_s);
}

// A processor rounds the factors of its products alone.
TEST(VirtualProfile, KeepsIntermediateValuesOfProcessorsInFp32) {
  const ModelSpec model = describe_model(gpt2(2, 64)).value();
  const DeviceProfile fp32 = virtual_profile(model, {.gflops = 50}, {}, {2});
  const DeviceProfile bf16 = virtual_profile(model, {.gflops = 50}, {.product_bytes = 2}, {2});
  EXPECT_EQ(bf16.rounded_bytes_per_parameter, 2);
  for (const auto& [signature, samples] : fp32.layers) {
    EXPECT_EQ(bf16.layers.at(signature)[0].saved_bytes, samples[0].saved_bytes);
  }
}

// Alone with a fast link, and in each precision, every device of the table gets a plan.
TEST(VirtualProfile, IsPlannedForEveryDeviceModel) {
  const ModelSpec model = describe_model(gpt2(2, 64)).value();
  for (const DeviceModel& known : device_models()) {
    for (const char* precision : {"fp32", "bf16", "fp16"}) {
      Cluster cluster = one_machine({});
      cluster.machines[0].virtual_speed.reset();
      cluster.machines[0].device_model = known.name;
      const VirtualNumbers numbers = virtual_numbers(cluster.machines[0], precision);
      VirtualJob job{.global_batch = 4, .moments_per_parameter = 2};
      job.product_bytes = product_bytes(numbers);
      job.rounds_intermediates = numbers.rounds_intermediates;
      PlanOptions options;
      options.global_batch = job.global_batch;
      options.process_state.moments_per_parameter = job.moments_per_parameter;
      const auto plan = make_plan(model, cluster, profile_of(model, numbers.speed, job), options);
      ASSERT_TRUE(plan.ok()) << known.name << ": " << describe(plan.error());
      EXPECT_GT(plan->predicted_step_s, 0) << known.name;
    }
  }
}

// Ten times the speed, a tenth of every time.
TEST(VirtualProfile, ScalesWithItsSpeed) {
  const ModelSpec model = describe_model(gpt2(2, 64)).value();
  const VirtualJob job{.global_batch = 8};
  const DeviceProfile slow = virtual_profile(model, {.tokens_per_s = 100}, job, {1});
  const DeviceProfile fast = virtual_profile(model, {.tokens_per_s = 1000}, job, {1});
  EXPECT_DOUBLE_EQ(slow.optimizer_s_per_parameter, 10 * fast.optimizer_s_per_parameter);
  for (const auto& [signature, samples] : slow.layers) {
    EXPECT_DOUBLE_EQ(samples[0].forward_s, 10 * fast.layers.at(signature)[0].forward_s);
  }
}

}  // namespace
}  // namespace motley
