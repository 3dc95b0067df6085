// HostMemory: a rank's state in this process's memory, updated by Optimizer's loops.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/spec/matrix_shape.h"
#include "training/memory/state_memory.h"
#include "training/optimizer/work_parts.h"

namespace motley {

class HostMemory final : public StateMemory {
 public:
  struct Parameter {
    std::span<float> values;
    std::span<float> gradients;
    std::optional<MatrixShape> matrix = {};  // of one that the optimizer's matrices() updates
  };

  // The spans must outlive this object. `summed`: the all-reduced gradients of each chunk.
  // `in_parts` divides the work of a step by parameter, which does not change results.
  HostMemory(std::vector<Parameter> parameters,
             std::map<ChunkId, std::span<float>> summed,
             std::unique_ptr<const Optimizer> optimizer,
             InParts in_parts = in_one_part);

  [[nodiscard]] std::vector<std::string> moment_names(std::size_t parameter) const override;

  void make_moments(std::size_t parameter) override;
  void make_average(std::size_t parameter) override;
  Result<void> fill(const StateArray& array, const Write& write) override;
  void add_to_gradient(std::size_t parameter, std::span<const float> terms) override;
  std::span<const float> view(const StateArray& array) override;
  std::uint64_t hash_values(std::size_t parameter) override;
  std::span<float> reduced_gradients(ChunkId chunk) override;
  std::span<float> reduced_gradient(std::size_t parameter) override;
  std::span<float> staged_gradient(std::size_t parameter) override;
  void stage_gradient(std::size_t parameter) override;
  std::vector<double> squared_norms(const std::vector<std::size_t>& parameters) override;
  void add_gradient(std::size_t from, std::size_t to) override;
  void copy_values(std::size_t from, std::size_t to) override;
  void update(const std::vector<std::size_t>& parameters,
              const UpdateArguments& arguments) override;
  void average(const std::vector<std::size_t>& parameters, double decay) override;
  void move_statistic(std::size_t parameter, float share, float count) override;
  void clear_gradients() override;

 private:
  [[nodiscard]] std::span<float> array(const StateArray& array);

  std::vector<Parameter> parameters_;
  std::map<ChunkId, std::span<float>> summed_;
  std::unique_ptr<const Optimizer> optimizer_;
  InParts in_parts_;
  std::vector<std::vector<std::vector<float>>> moments_;  // [parameter][moment]
  std::vector<std::vector<float>> averages_;              // [parameter]
};

}  // namespace motley
