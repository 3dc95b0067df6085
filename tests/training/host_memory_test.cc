// However a step is divided, its bits are the same.
#include "training/memory/host_memory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

// Processes the last grain first, then everything before it.
void backwards(std::int64_t count,
               std::int64_t grain,
               const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t last = (count - 1) / grain * grain;
  body(last, count);
  if (last > 0) body(0, last);
}

struct Held {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;

  friend bool operator==(const Held&, const Held&) = default;
};

Held held() {
  Held held;
  for (const std::size_t count : {std::size_t{3}, std::size_t{200'001}, std::size_t{65'536}}) {
    std::vector<float> values(count);
    std::vector<float> gradients(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::sin(static_cast<float>(i));
      gradients[i] = std::cos(static_cast<float>(3 * i));
    }
    held.values.push_back(std::move(values));
    held.gradients.push_back(std::move(gradients));
  }
  return held;
}

struct Stepped {
  Held held;
  std::vector<double> norms;
  std::vector<float> moments;

  friend bool operator==(const Stepped&, const Stepped&) = default;
};

// Two steps, the second with gradients of zero.
Stepped stepped(const TrainConfig& train, InParts in_parts) {
  Stepped stepped{held(), {}, {}};
  std::vector<HostMemory::Parameter> parameters;
  for (std::size_t p = 0; p < stepped.held.values.size(); ++p) {
    parameters.push_back({stepped.held.values[p], stepped.held.gradients[p]});
  }
  const auto optimizer = make_optimizer(train);
  if (optimizer->matrices() != nullptr) parameters[2].matrix = {128, 512};
  HostMemory memory(parameters, {}, make_optimizer(train), std::move(in_parts));
  const std::vector<std::size_t> all = {0, 1, 2};
  for (const std::size_t parameter : all) memory.make_moments(parameter);
  for (int step = 1; step <= 2; ++step) {
    for (const double norm : memory.squared_norms(all)) stepped.norms.push_back(norm);
    memory.update(all, {{1e-2, optimizer->corrections(step)}});
    memory.clear_gradients();
    if (step == 1) {
      EXPECT_GT(stepped.norms[1], 1000);
      EXPECT_NE(stepped.norms[1], stepped.norms[2]);
    }
  }
  for (const std::size_t parameter : all) {
    for (std::size_t moment = 0; moment < memory.moment_names(parameter).size(); ++moment) {
      const auto view = memory.view({StateArray::Kind::kMoment, parameter, moment});
      stepped.moments.insert(stepped.moments.end(), view.begin(), view.end());
    }
  }
  return stepped;
}

TEST(HostMemory, StepsToTheSameBitsInParts) {
  for (const char* optimizer : optimizer_names()) {
    TrainConfig train;
    train.optimizer = optimizer;
    train.momentum = 0.9;
    train.weight_decay = 0.1;
    const Stepped whole = stepped(train, in_one_part);
    EXPECT_NE(whole.held.values, held().values);
    EXPECT_TRUE(whole == stepped(train, backwards)) << optimizer;
  }
}

TEST(HostMemory, GivesMatricesTheirOwnMoments) {
  TrainConfig train;
  train.optimizer = "muon";
  std::vector<float> values(12, 1.0F);
  std::vector<float> gradients(12, 1.0F);
  const HostMemory memory({{values, gradients, MatrixShape{3, 4}}, {values, gradients}}, {},
                          make_optimizer(train));
  EXPECT_EQ(memory.moment_names(0), (std::vector<std::string>{"momentum"}));
  EXPECT_EQ(memory.moment_names(1), (std::vector<std::string>{"exp_avg", "exp_avg_sq"}));
}

}  // namespace
}  // namespace motley
