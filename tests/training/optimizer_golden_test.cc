// Compared with torch.optim of PyTorch 1.13 (the file was written by make_optimizer_golden.py).
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

std::vector<float> read_floats(std::istringstream& line) {
  std::vector<float> values;
  for (std::string word; line >> word;) values.push_back(std::strtof(word.c_str(), nullptr));
  return values;
}

// Replays the file's updates and compares after each.
class Replay {
 public:
  void begin_case(std::istringstream& line) {
    TrainConfig train;
    line >> name_ >> train.optimizer >> train.lr >> train.weight_decay >> train.beta1 >>
        train.beta2 >> train.epsilon >> train.momentum;
    optimizer_ = make_optimizer(train);
    values_ = {0.5F, -1.25F, 3.0F, 0.0F};
    moments_.assign(optimizer_->moment_names().size(), std::vector<float>(values_.size()));
    lr_ = train.lr;
    update_number_ = 0;
    ++cases_;
  }

  void update(const std::vector<float>& gradients) {
    ++update_number_;
    ++updates_;
    const std::vector<std::span<float>> moments(moments_.begin(), moments_.end());
    optimizer_->update(values_, gradients, moments,
                       {.factors = {lr_, optimizer_->corrections(update_number_)}});
  }

  // Both compute the same formula in fp32. PyTorch may contract or reorder within an operation,
  // which costs at most a few roundings of 2^-24 for each of the twenty updates.
  void compare(const std::vector<float>& expected) const {
    ASSERT_EQ(expected.size(), values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      EXPECT_NEAR(values_[i], expected[i], 2e-6 * (std::abs(expected[i]) + lr_))
          << name_ << ", value " << i << ", update " << update_number_;
    }
  }

  [[nodiscard]] int cases() const { return cases_; }

  [[nodiscard]] int updates() const { return updates_; }

 private:
  std::string name_;
  std::unique_ptr<const Optimizer> optimizer_;
  std::vector<float> values_;
  std::vector<std::vector<float>> moments_;
  double lr_ = 0;
  std::int64_t update_number_ = 0;
  int cases_ = 0;
  int updates_ = 0;
};

TEST(OptimizerGolden, AgreesWithPyTorch) {
  std::ifstream file(std::string(MOTLEY_GOLDEN) + "/optimizer.txt");
  Replay replay;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "case") replay.begin_case(line);
    if (kind == "gradients") replay.update(read_floats(line));
    if (kind == "values") replay.compare(read_floats(line));
  }
  EXPECT_EQ(replay.cases(), 5);
  EXPECT_EQ(replay.updates(), 100);
}

}  // namespace
}  // namespace motley
