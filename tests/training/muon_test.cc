// Compared with the steps of torch.optim.Muon, computed in double (the file was written by
// make_muon_golden.py).
#include "training/optimizer/muon.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/philox.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

using Floats = std::vector<float>;

Floats noise_of(const MatrixShape& shape, std::uint64_t stream) {
  Floats values(static_cast<std::size_t>(shape.rows * shape.columns));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * to_unit_float(philox4x32(7, stream, i)[0]) - 1;
  }
  return values;
}

Floats rest_of(std::istringstream& line) {
  Floats values;
  for (std::string word; line >> word;) values.push_back(std::strtof(word.c_str(), nullptr));
  return values;
}

class MuonReplay {
 public:
  void begin_case(std::istringstream& line) {
    TrainConfig train;
    train.optimizer = "muon";
    line >> name_ >> shape_.rows >> shape_.columns >> lr_ >> train.weight_decay >>
        train.muon_momentum;
    optimizer_ = make_optimizer(train);
    ++cases_;
  }

  void start(Floats values) {
    moment_.assign(values.size(), 0);
    values_ = std::move(values);
  }

  void update(const Floats& gradients) {
    ++updates_;
    optimizer_->matrices()->update(values_, gradients, moment_, shape_, {.factors = {.lr = lr_}},
                                   in_one_part);
  }

  void compare(const Floats& expected) const {
    ASSERT_EQ(expected.size(), values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      ASSERT_NEAR(values_[i], expected[i], 1e-5) << name_ << ", value " << i;
    }
  }

  [[nodiscard]] int cases() const { return cases_; }

  [[nodiscard]] int updates() const { return updates_; }

 private:
  std::string name_;
  MatrixShape shape_;
  double lr_ = 0;
  std::unique_ptr<const Optimizer> optimizer_;
  Floats values_;
  Floats moment_;
  int cases_ = 0;
  int updates_ = 0;
};

TEST(MuonGolden, AgreesWithPyTorch) {
  std::ifstream file(std::string(MOTLEY_GOLDEN) + "/muon.txt");
  MuonReplay replay;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "case") replay.begin_case(line);
    if (kind == "start") replay.start(rest_of(line));
    if (kind == "gradients") replay.update(rest_of(line));
    if (kind == "values") replay.compare(rest_of(line));
  }
  EXPECT_EQ(replay.cases(), 4);
  EXPECT_EQ(replay.updates(), 64);
}

Floats transposed(const Floats& matrix, const MatrixShape& shape) {
  Floats other(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    const auto columns = static_cast<std::size_t>(shape.columns);
    other[i % columns * static_cast<std::size_t>(shape.rows) + i / columns] = matrix[i];
  }
  return other;
}

// Weights stored [in, out] and [out, in] are trained alike.
TEST(Orthogonalize, CommutesWithTransposition) {
  const MatrixShape shape{37, 70};
  Floats wide = noise_of(shape, 1);
  Floats tall = transposed(wide, shape);
  orthogonalize(wide, shape, in_one_part);
  orthogonalize(tall, {shape.columns, shape.rows}, in_one_part);
  const Floats expected = transposed(wide, shape);
  for (std::size_t i = 0; i < tall.size(); ++i) ASSERT_NEAR(tall[i], expected[i], 1e-5) << i;
}

// The iteration moves singular values to between 0.68 and 1.13, so rows have nearly that norm.
TEST(Orthogonalize, MakesRowsNearlyOrthonormal) {
  const MatrixShape shape{8, 100};
  Floats u = noise_of(shape, 2);
  orthogonalize(u, shape, in_one_part);
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      double dot = 0;
      for (std::size_t k = 0; k < 100; ++k) dot += double{u[i * 100 + k]} * u[j * 100 + k];
      if (i == j) {
        EXPECT_GT(dot, 0.4) << i;
        EXPECT_LT(dot, 1.3) << i;
      } else {
        EXPECT_LT(std::abs(dot), 0.4) << i << ", " << j;
      }
    }
  }
}

TEST(Orthogonalize, LeavesZerosAndReducesAnyScale) {
  const MatrixShape shape{4, 6};
  Floats zeros(24, 0.0F);
  orthogonalize(zeros, shape, in_one_part);
  EXPECT_EQ(zeros, Floats(24, 0.0F));
  Floats large = noise_of(shape, 3);
  Floats small = large;
  for (float& value : large) value *= 0x1p60F;  // exact; squares would overflow fp32
  orthogonalize(large, shape, in_one_part);
  orthogonalize(small, shape, in_one_part);
  EXPECT_EQ(large, small);
}

// Weight decay and gradient scale as in every optimizer.
TEST(Muon, DecaysAndScales) {
  TrainConfig train;
  train.optimizer = "muon";
  const auto optimizer = make_optimizer(train);
  const MatrixShape shape{3, 5};
  Floats decayed = noise_of(shape, 4);
  const Floats before = decayed;
  Floats moment(decayed.size(), 0.0F);
  const Floats zeros(decayed.size(), 0.0F);
  const Muon& muon = *optimizer->matrices();
  muon.update(decayed, zeros, moment, shape, {.factors = {.lr = 0.1}}, in_one_part);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(decayed[i], before[i] * 0.99F);
  Floats undecayed = before;
  muon.update(undecayed, zeros, moment, shape, {.factors = {.lr = 0.1}, .decay_factor = 0},
              in_one_part);
  EXPECT_EQ(undecayed, before);
  muon.update(undecayed, noise_of(shape, 5), moment, shape, {.gradient_scale = 0.5F}, in_one_part);
  Floats halved = noise_of(shape, 5);
  for (std::size_t i = 0; i < halved.size(); ++i) {
    EXPECT_FLOAT_EQ(moment[i], 0.05F * 0.5F * halved[i]);
  }
}

TEST(Muon, EndsTheProgramOnAnotherShape) {
  TrainConfig train;
  train.optimizer = "muon";
  const auto optimizer = make_optimizer(train);
  Floats values(6);
  Floats moment(6);
  EXPECT_DEATH(optimizer->matrices()->update(values, values, moment, {2, 4}, {}, in_one_part),
               "for 2 x 4");
}

}  // namespace
}  // namespace motley
