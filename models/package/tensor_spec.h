// TensorSpec: type and shape of a tensor, without its values; BoundarySpec: the same for a tensor
// at a boundary between layers; SampleInput: the same for an input of the first layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace motley {

// The last four, the narrow ones, are of constants alone: graphs convert them before they compute.
enum class Dtype { kFloat32, kInt64, kBool, kBFloat16, kFloat16, kInt8, kUInt8 };

[[nodiscard]] constexpr bool is_narrow(Dtype type) {
  return type > Dtype::kBool;
}

struct TensorSpec {
  Dtype type = Dtype::kFloat32;
  std::vector<std::int64_t> shape;  // of one sample, without the batch dimension, if it has one

  [[nodiscard]] std::int64_t count() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }

  [[nodiscard]] std::int64_t bytes() const {
    constexpr std::int64_t kBytes[] = {4, 8, 1, 2, 2, 1, 1};
    return count() * kBytes[static_cast<std::size_t>(type)];
  }

  // The shape behind a batch dimension.
  [[nodiscard]] std::vector<std::int64_t> sizes(std::int64_t samples) const {
    std::vector<std::int64_t> all = {samples};
    all.insert(all.end(), shape.begin(), shape.end());
    return all;
  }

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct BoundarySpec : TensorSpec {
  // Whether backward returns its gradient. Tensors without one, such as all integers and truth
  // values, are transferred bit-exactly.
  bool gradient = true;

  friend bool operator==(const BoundarySpec&, const BoundarySpec&) = default;
};

struct SampleInput {
  // A keyword argument of the model; "" for the only input of one that is called with a tensor.
  std::string name;
  TensorSpec tensor;  // fp32, int64 or bool
  // Integers are from 0 to below it. Without one they are any that 32 bits represent.
  std::optional<std::int64_t> limit;

  friend bool operator==(const SampleInput&, const SampleInput&) = default;
};

}  // namespace motley
