// StateMemory: where the values, gradients and moments of a rank's parameters lie, and what a step
// computes on them. Which parameter is what, StageState knows; here they are numbers, in the order
// in which it holds them. Used by the compute thread alone.
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
  enum class Kind { kValues, kGradients, kMoment };

  Kind kind = Kind::kValues;
  std::size_t parameter = 0;
  std::size_t moment = 0;  // which of the optimizer's
};

class StateMemory {
 public:
  virtual ~StateMemory() = default;

  // As Optimizer::moment_names().
  [[nodiscard]] virtual std::vector<std::string> moment_names() const = 0;

  // Zeros, as many as the parameter has values. Called once for each that the optimizer steps.
  virtual void make_moments(std::size_t parameter) = 0;

  // Lends memory of the host to `write`; what stands there when it returns is the array's. What
  // stood there before is not said. Nothing is said of the array when `write` fails.
  using Write = std::function<Result<void>(std::span<float> values)>;
  [[nodiscard]] virtual Result<void> fill(const StateArray& array, const Write& write) = 0;
  virtual void add_to_gradient(std::size_t parameter, std::span<const float> terms) = 0;

  // What the array holds, until the next update() or clear_gradients().
  [[nodiscard]] virtual std::span<const float> view(const StateArray& array) = 0;
  // A function of the values' bits.
  [[nodiscard]] virtual std::uint64_t hash_values(std::size_t parameter) = 0;

  // Memory of the host where the chunk's gradients are summed over its replicas, as
  // StageGradients::gradients().
  [[nodiscard]] virtual std::span<float> summed_gradients(ChunkId chunk) = 0;
  // The parameter's part of that, or of what lent_gradient() lends. REQUIRES: it is summed.
  [[nodiscard]] virtual std::span<float> summed_gradient(std::size_t parameter) = 0;
  // The same for one parameter's, once they are all there (lend_gradient).
  [[nodiscard]] virtual std::span<float> lent_gradient(std::size_t parameter) = 0;
  // What was added to the parameter's gradient so far stands in lent_gradient(), where anybody
  // asked for that.
  virtual void lend_gradient(std::size_t parameter) = 0;

  // Sums of squares of gradients, in double; those that were summed over ranks first come back from
  // where that was done.
  [[nodiscard]] virtual std::vector<double> squared_norms(
      const std::vector<std::size_t>& parameters) = 0;
  virtual void add_gradient(std::size_t from, std::size_t to) = 0;
  virtual void copy_values(std::size_t from, std::size_t to) = 0;
  // One optimizer's step of each. REQUIRES: the parameters have moments.
  virtual void update(const std::vector<std::size_t>& parameters,
                      const UpdateArguments& arguments) = 0;
  // values = (1 - share) values + share (gradients / count)
  virtual void move_statistic(std::size_t parameter, float share, float count) = 0;
  virtual void clear_gradients() = 0;
};

}  // namespace motley
