// StateMemory: holds the values, gradients and moments of a rank's parameters and computes a step
// on them. StateMemory knows parameters by index, in the order of StageState's entries; their
// meaning is StageState's concern. Used by the compute thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "training/optimizer/optimizer.h"

namespace motley {

// One flat array of a parameter.
struct StateArray {
  enum class Kind { kValues, kGradients, kMoment, kAverage };

  Kind kind = Kind::kValues;
  std::size_t parameter = 0;
  std::size_t moment = 0;  // index among the parameter's moments
};

inline StateArray values_of(std::size_t parameter) {
  return {StateArray::Kind::kValues, parameter};
}

inline StateArray average_of(std::size_t parameter) {
  return {StateArray::Kind::kAverage, parameter};
}

inline StateArray moment_of(std::size_t parameter, std::size_t moment) {
  return {StateArray::Kind::kMoment, parameter, moment};
}

class StateMemory {
 public:
  virtual ~StateMemory() = default;

  // The parameter's moments, in the order of StateArray::moment; names as in checkpoints.
  [[nodiscard]] virtual std::vector<std::string> moment_names(std::size_t parameter) const = 0;

  // Allocates moments of the parameter's size, set to zero. Called once for each parameter that the
  // optimizer updates.
  virtual void make_moments(std::size_t parameter) = 0;

  // Allocates the average of the parameter's values. Called at most once for each parameter.
  virtual void make_average(std::size_t parameter) = 0;

  // Passes host memory to `write`; its contents after the call become the array's. The initial
  // contents are unspecified. If `write` fails, the array's contents are unspecified.
  using Write = std::function<Result<void>(std::span<float> values)>;
  [[nodiscard]] virtual Result<void> fill(const StateArray& array, const Write& write) = 0;
  virtual void add_to_gradient(std::size_t parameter, std::span<const float> terms) = 0;

  // The array's contents. Valid until the next update() or clear_gradients().
  [[nodiscard]] virtual std::span<const float> view(const StateArray& array) = 0;
  // A hash of the values' bits.
  [[nodiscard]] virtual std::uint64_t hash_values(std::size_t parameter) = 0;

  // Host memory where the chunk's gradients are all-reduced over its replicas, as
  // StageGradients::gradients().
  [[nodiscard]] virtual std::span<float> reduced_gradients(ChunkId chunk) = 0;
  // The parameter's part of reduced_gradients(), or else staged_gradient(). REQUIRES: its gradient
  // is all-reduced.
  [[nodiscard]] virtual std::span<float> reduced_gradient(std::size_t parameter) = 0;
  // Host memory for one parameter's gradient, valid after stage_gradient().
  [[nodiscard]] virtual std::span<float> staged_gradient(std::size_t parameter) = 0;
  // Copies the parameter's gradient to staged_gradient(), if that was ever called for it.
  virtual void stage_gradient(std::size_t parameter) = 0;

  // Squared gradient norms, in double. All-reduced gradients are first copied back from the memory
  // in which they were all-reduced.
  [[nodiscard]] virtual std::vector<double> squared_norms(
      const std::vector<std::size_t>& parameters) = 0;
  virtual void add_gradient(std::size_t from, std::size_t to) = 0;
  virtual void copy_values(std::size_t from, std::size_t to) = 0;
  // Updates each parameter. REQUIRES: the parameters have moments.
  virtual void update(const std::vector<std::size_t>& parameters,
                      const UpdateArguments& arguments) = 0;
  // average = decay average + (1 - decay) values. REQUIRES: the parameters have averages.
  virtual void average(const std::vector<std::size_t>& parameters, double decay) = 0;
  // values = (1 - share) values + share (gradients / count)
  virtual void move_statistic(std::size_t parameter, float share, float count) = 0;
  virtual void clear_gradients() = 0;
};

}  // namespace motley
