// DeviceMemory compared with HostMemory: on the processor's own tensors and, with
// MOTLEY_TEST_DEVICE, on a device.
#include "training/memory/device_memory.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <gmock/gmock.h>

#include <ATen/ATen.h>
#include <torch/version.h>

#include "tests/support/tested_device.h"
#include "training/memory/device_optimizer.h"
#include "training/memory/fused_adamw.h"
#include "training/optimizer/muon.h"

namespace motley {
namespace {

constexpr std::int64_t kCount = 1000;

TrainConfig train_of(const char* optimizer) {
  TrainConfig train;
  train.optimizer = optimizer;
  train.momentum = 0.9;
  train.weight_decay = 0.1;
  return train;
}

at::Tensor wave(double phase) {
  return at::arange(kCount, at::kFloat).mul_(0.37).add_(phase).sin_();
}

std::vector<float> floats(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu();
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
}

// LibTorch's square root is IEEE's in 1.13 and differs by one unit in the last place in 2.15.
constexpr double kRoot = 1e-6;

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], kRoot * std::max(1.0F, std::abs(expected[i]))) << i;
  }
}

class DeviceOptimizerTest : public testing::TestWithParam<const char*> {};

TEST_P(DeviceOptimizerTest, TakesTheStepsOfTheHost) {
  const TrainConfig train = train_of(GetParam());
  const auto host = make_optimizer(train);
  const c10::Device there = tested_device().torch();
  const DeviceOptimizer device(train, there);
  std::vector<float> values = floats(wave(0));
  at::Tensor tensor = wave(0).to(there);
  std::vector<std::vector<float>> moments(host->moment_names().size(),
                                          std::vector<float>(kCount, 0.0F));
  std::vector<at::Tensor> tensors;
  for (std::size_t k = 0; k < moments.size(); ++k) tensors.push_back(at::zeros_like(tensor));
  for (int step = 1; step <= 5; ++step) {
    const std::vector<float> gradients = floats(wave(step));
    const UpdateArguments arguments{
        {1e-2, host->corrections(step)}, 0.25F, 0.5 * (step % 3), /*corrected=*/step % 3 == 0};
    const std::vector<std::span<float>> spans(moments.begin(), moments.end());
    host->update(values, gradients, spans, arguments);
    device.update(std::array{TrainedArrays{tensor, wave(step).to(there), tensors}}, arguments,
                  DeviceOptimizer::Rounding::kExact);
    SCOPED_TRACE(step);
    expect_near(floats(tensor), values);
    for (std::size_t k = 0; k < moments.size(); ++k) ASSERT_EQ(floats(tensors[k]), moments[k]);
  }
}

// Within `tolerance` relative to the largest value.
void expect_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  const at::Tensor there = expected.cpu();
  EXPECT_LE((actual.cpu() - there).abs_().max().item<float>(),
            tolerance * there.abs().max().item<float>());
}

// Each step may round each sum in the other direction, by 6e-8 of it. Two parameters of different
// sizes together have the same bits as each alone.
TEST_P(DeviceOptimizerTest, GoesTheSameWayFast) {
  const TrainConfig train = train_of(GetParam());
  const auto host = make_optimizer(train);
  const c10::Device there = tested_device().torch();
  const DeviceOptimizer device(train, there);
  if (!FusedAdamw::find(train, there)) GTEST_SKIP() << "there is no faster way here";

  const auto run = [&](DeviceOptimizer::Rounding rounding, const std::vector<std::int64_t>& sizes) {
    std::vector<TrainedArrays> trained;
    for (const std::int64_t size : sizes) {
      const at::Tensor values = wave(0).narrow(0, 0, size).to(there);
      trained.push_back({values, {}, {}});
      for (std::size_t k = 0; k < host->moment_names().size(); ++k) {
        trained.back().moments.push_back(at::zeros_like(values));
      }
    }
    for (int step = 1; step <= 20; ++step) {
      const UpdateArguments arguments{{1e-2, host->corrections(step)}, 0.25F, 0.5 * (step % 3)};
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        trained[i].gradients = wave(step).narrow(0, 0, sizes[i]).to(there);
      }
      device.update(trained, arguments, rounding);
    }
    return trained;
  };
  const std::vector<std::int64_t> sizes = {kCount, kCount / 3};
  const std::vector<TrainedArrays> exact = run(DeviceOptimizer::Rounding::kExact, sizes);
  const std::vector<TrainedArrays> fast = run(DeviceOptimizer::Rounding::kFast, sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const TrainedArrays alone = run(DeviceOptimizer::Rounding::kFast, {sizes[i]}).front();
    EXPECT_TRUE(fast[i].values.cpu().equal(alone.values.cpu()));
    expect_close(fast[i].values, exact[i].values, 2e-6);
    for (std::size_t k = 0; k < exact[i].moments.size(); ++k) {
      expect_close(fast[i].moments[k], exact[i].moments[k], 1e-6);
    }
  }
}

TEST(DeviceOptimizerOnce, IsOneOperationWhereThereIsOne) {
  const c10::Device there = tested_device().torch();
  const bool known =
      TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4);
  EXPECT_EQ(FusedAdamw::find(train_of("adamw"), there).has_value(), known);
  EXPECT_EQ(FusedAdamw::find(train_of("muon"), there).has_value(), known);
  EXPECT_FALSE(FusedAdamw::find(train_of("sgd"), there).has_value());
}

// A wide and a tall matrix. Of matrices with copies the bits are the processor's; the device's own
// products add in another order.
TEST(DeviceMuon, TakesTheStepsOfTheHost) {
  const TrainConfig train = train_of("muon");
  const auto host = make_optimizer(train);
  const c10::Device there = tested_device().torch();
  const DeviceOptimizer device(train, there);
  EXPECT_EQ(device.moment_names(true), host->matrices()->moment_names());
  for (const MatrixShape shape : {MatrixShape{20, 50}, MatrixShape{50, 20}}) {
    std::vector<float> values = floats(wave(0));
    std::vector<float> moment(kCount);
    const TrainedArrays exact{wave(0).to(there), {}, {at::zeros({kCount}).to(there)}, shape};
    const TrainedArrays fast{wave(0).to(there), {}, {at::zeros({kCount}).to(there)}, shape};
    for (int step = 1; step <= 5; ++step) {
      const UpdateArguments arguments{{1e-2, host->corrections(step)}, 0.25F, 0.5 * (step % 3)};
      // A sine's rows would be linear combinations of two.
      const at::Tensor gradients = wave(step).mul_(1e4).sin_();
      host->matrices()->update(values, floats(gradients), moment, shape, arguments, in_one_part);
      for (const auto& [arrays, rounding] : {std::pair{exact, DeviceOptimizer::Rounding::kExact},
                                             std::pair{fast, DeviceOptimizer::Rounding::kFast}}) {
        TrainedArrays given = arrays;
        given.gradients = gradients.to(there);
        device.update(std::array{given}, arguments, rounding);
      }
      SCOPED_TRACE(step);
      ASSERT_EQ(floats(exact.values), values);
      ASSERT_EQ(floats(exact.moments[0]), moment);
      ASSERT_EQ(floats(fast.moments[0]), moment);
      expect_close(fast.values, exact.values, 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceOptimizerTest, testing::ValuesIn(optimizer_names()));

// The transfers of DeviceMemory; on the processor nothing is copied.
class DeviceMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (tested_device().is_host()) GTEST_SKIP() << "needs a device (MOTLEY_TEST_DEVICE)";
    copies_.emplace(tested_device());
    gradients_ = wave(1).to(tested_device().torch());
    mirror_.emplace(gradients_, *copies_);
    memory_ = std::make_unique<DeviceMemory>(
        std::vector<DeviceMemory::Parameter>{
            {wave(0).to(tested_device().torch()), gradients_, mirror_->host()}},
        std::map<ChunkId, GradientMirror*>{{ChunkId{0}, &*mirror_}}, train_of("adamw"), *copies_);
    memory_->make_moments(0);
  }

  std::optional<DeviceCopies> copies_;
  at::Tensor gradients_;
  std::optional<GradientMirror> mirror_;
  std::unique_ptr<DeviceMemory> memory_;
};

TEST_F(DeviceMemoryTest, KeepsWhatItIsFilledWith) {
  const StateArray values{StateArray::Kind::kValues, 0};
  ASSERT_TRUE(memory_
                  ->fill(values,
                         [](std::span<float> target) -> Result<void> {
                           std::ranges::fill(target, 1.5F);
                           return {};
                         })
                  .ok());
  const std::span<const float> seen = memory_->view(values);
  EXPECT_EQ(std::vector<float>(seen.begin(), seen.end()), std::vector<float>(kCount, 1.5F));
}

TEST_F(DeviceMemoryTest, TakesSumsBackBeforeTheirNorm) {
  std::vector<std::size_t> firsts;
  mirror_->fetch(kCount / 2, [&](std::size_t first) { firsts.push_back(first); });
  mirror_->finish_fetching([&](std::size_t first) { firsts.push_back(first); });
  EXPECT_EQ(firsts, (std::vector<std::size_t>{kCount / 2, 0}));
  const std::span<float> sums = memory_->reduced_gradients(ChunkId{0});
  EXPECT_EQ(std::vector<float>(sums.begin(), sums.end()), floats(wave(1)));
  std::ranges::fill(sums, 2.0F);
  EXPECT_DOUBLE_EQ(memory_->squared_norms({0}).front(), 4.0 * kCount);
  EXPECT_EQ(floats(gradients_), std::vector<float>(kCount, 2.0F));
  memory_->clear_gradients();
  EXPECT_EQ(memory_->squared_norms({0}).front(), 0);
  EXPECT_EQ(sums.front(), 0);
}

TEST_F(DeviceMemoryTest, AddsWhatSumsStillOwe) {
  memory_->add_to_gradient(0, std::vector<float>(kCount, 3.0F));
  EXPECT_EQ(floats(gradients_), floats(wave(1) + 3));
}

}  // namespace
}  // namespace motley
