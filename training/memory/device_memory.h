// DeviceMemory: a rank's state on a device. Values, gradients and moments stay there, except to be
// all-reduced, saved or compared. A step without these waits for the device once, for the norms.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/device/device_copies.h"
#include "training/memory/device_optimizer.h"
#include "training/memory/gradient_mirror.h"
#include "training/memory/state_memory.h"

namespace motley {

class DeviceMemory final : public StateMemory {
 public:
  struct Parameter {
    at::Tensor values;  // flat views of the chain's arenas
    at::Tensor gradients;
    std::span<float> mirrored;  // its part of a host mirror; empty if it has none
    // Whether another rank may hold a copy, so that the optimizer must produce the same bits there.
    // Does not depend on how layers are divided among ranks, so neither do the bits.
    bool has_copies = false;
    std::optional<MatrixShape> matrix = {};  // as in HostMemory::Parameter
  };

  // `mirrors`: for chunks whose gradients are all-reduced over replicas. `mirrors` and `copies`
  // must outlive this object. `in_parts`: as in HostMemory, for work on the processor.
  DeviceMemory(std::vector<Parameter> parameters,
               std::map<ChunkId, GradientMirror*> mirrors,
               const TrainConfig& train,
               DeviceCopies& copies,
               InParts in_parts = in_one_part);

  [[nodiscard]] std::vector<std::string> moment_names(std::size_t parameter) const override {
    return optimizer_.moment_names(parameters_[parameter].matrix.has_value());
  }

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
  [[nodiscard]] at::Tensor array(const StateArray& array);
  [[nodiscard]] at::Tensor on_host(const at::Tensor& tensor);

  std::vector<Parameter> parameters_;
  std::map<ChunkId, GradientMirror*> mirrors_;
  std::map<std::size_t, std::unique_ptr<GradientMirror>> lent_;  // [parameter]
  const DeviceOptimizer optimizer_;
  DeviceCopies& copies_;
  std::vector<std::vector<at::Tensor>> moments_;  // [parameter][moment]
  std::vector<at::Tensor> averages_;              // [parameter]
  std::vector<at::Tensor> viewed_;                // copies on the host
};

}  // namespace motley
