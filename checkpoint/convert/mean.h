// The mean of the parameters of several checkpoints or folders of weights.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/convert/tensor_writer.h"

namespace motley {

struct WeightedValues {
  std::unique_ptr<ValueStream> values;
  double weight = 1;
};

// Σ weight · value / Σ weight, computed in double and rounded to fp32 once.
class MeanValues final : public ValueStream {
 public:
  explicit MeanValues(std::vector<WeightedValues> parts);
  [[nodiscard]] Result<void> next(std::span<float> values) override;

 private:
  std::vector<WeightedValues> parts_;
  double weights_ = 0;
  std::vector<float> piece_;
  std::vector<double> sums_;
};

// The mean's tensors, named as the first one's parameters. kConfig, naming what differs, when
// they do not have the same parameters of the same shapes. `names`: of the readers, for errors.
// REQUIRES: as many weights as readers, of which there is one; the readers outlive what is
// returned.
[[nodiscard]] Result<std::vector<NewTensor>> mean_of(const std::vector<CheckpointReader>& readers,
                                                     const std::vector<std::string>& names,
                                                     const std::vector<double>& weights);

}  // namespace motley
