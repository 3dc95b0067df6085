// HostMemory: a rank's state in this process's memory, updated by Optimizer's loops.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "training/state_memory.h"

namespace motley {

// Calls body(first, last) once for each of several ranges, which cover 0 … count and begin at
// multiples of `grain`. The calls may run concurrently. Rethrows an exception of `body` after all
// calls have ended. models/kernels/in_parts.h, without LibTorch.
using InParts = std::function<void(std::int64_t count,
                                   std::int64_t grain,
                                   const std::function<void(std::int64_t, std::int64_t)>& body)>;

// Runs everything on the calling thread.
void in_one_part(std::int64_t count,
                 std::int64_t grain,
                 const std::function<void(std::int64_t, std::int64_t)>& body);

class HostMemory final : public StateMemory {
 public:
  struct Parameter {
    std::span<float> values;
    std::span<float> gradients;
  };

  // The spans must outlive this object. `summed`: the all-reduced gradients of each chunk.
  // `in_parts` divides the work of a step by parameter, which does not change results.
  HostMemory(std::vector<Parameter> parameters,
             std::map<ChunkId, std::span<float>> summed,
             std::unique_ptr<const Optimizer> optimizer,
             InParts in_parts = in_one_part);

  [[nodiscard]] std::vector<std::string> moment_names() const override {
    return optimizer_->moment_names();
  }

  void make_moments(std::size_t parameter) override;
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
  void move_statistic(std::size_t parameter, float share, float count) override;
  void clear_gradients() override;

 private:
  [[nodiscard]] std::span<float> array(const StateArray& array);

  std::vector<Parameter> parameters_;
  std::map<ChunkId, std::span<float>> summed_;
  std::unique_ptr<const Optimizer> optimizer_;
  InParts in_parts_;
  std::vector<std::vector<std::vector<float>>> moments_;  // [parameter][moment]
};

}  // namespace motley
