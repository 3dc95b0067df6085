#include "checkpoint/convert/difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/convert/value_stream.h"

namespace motley {
namespace {

using Tensors = std::map<std::string, StoredTensor>;

Tensors tensors_of(const CheckpointReader& reader, bool with_optimizer) {
  Tensors tensors;
  for (StoredTensor& tensor : reader.tensors()) {
    if (tensor.of_optimizer && !with_optimizer) continue;
    std::string name = tensor.outline.name;
    tensors.emplace(std::move(name), std::move(tensor));
  }
  return tensors;
}

bool is_float(const TensorOutline& tensor) {
  return tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16";
}

std::string text_of(const TensorOutline& tensor) {
  return fmt::format("{} [{}]", tensor.dtype, fmt::join(tensor.shape, ", "));
}

// Accumulates in several lanes, which the compiler vectorises.
class Sums {
 public:
  void add(std::span<const float> a, std::span<const float> b) {
    std::size_t i = 0;
    for (; i + kLanes <= a.size(); i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) add_one(lane, a[i + lane], b[i + lane]);
    }
    for (; i < a.size(); ++i) add_one(0, a[i], b[i]);
  }

  void write_to(TensorDifference& difference) const {
    double square = 0;
    double square_a = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      difference.differing += differing_[lane];
      difference.largest = std::max(difference.largest, largest_[lane]);
      square += square_[lane];
      square_a += square_a_[lane];
    }
    if (square == 0) return;  // at most zeros of different sign
    difference.relative =
        std::isfinite(difference.largest) ? std::sqrt(square / square_a) : kInfinity;
  }

 private:
  static constexpr std::size_t kLanes = 8;

  void add_one(std::size_t lane, float a, float b) {
    const bool is_same = std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    const double distance = is_same ? 0.0 : std::fabs(static_cast<double>(a) - b);
    differing_[lane] += is_same ? 0 : 1;
    // A comparison with NaN is false.
    largest_[lane] = std::max(largest_[lane], distance <= kLargestDistance ? distance : kInfinity);
    square_[lane] += distance * distance;
    const double square_a = static_cast<double>(a) * a;
    square_a_[lane] += square_a <= kLargestSquare ? square_a : 0.0;
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kLargestDistance = 0x1p129;  // above that of two finite fp32 values
  static constexpr double kLargestSquare = 0x1p256;    // above that of one

  std::array<std::uint64_t, kLanes> differing_{};
  std::array<double, kLanes> largest_{};
  std::array<double, kLanes> square_{};
  std::array<double, kLanes> square_a_{};
};

struct Pairs {
  std::vector<std::pair<const StoredTensor*, const StoredTensor*>> same_shape;
  std::vector<MismatchedTensor> mismatched;
  std::uint64_t bytes = 0;  // of the values to compare, as fp32
};

Pairs pairs_of(const Tensors& a, const Tensors& b, const CheckpointReader& reader_b) {
  Pairs pairs;
  std::set<std::string> met;
  for (const auto& [name, tensor] : a) {
    const auto stored = reader_b.stored_name(name);
    const auto found = stored ? b.find(*stored) : b.end();
    if (found == b.end() || !met.insert(found->first).second) {
      pairs.mismatched.push_back({name, text_of(tensor.outline), ""});
      continue;
    }
    const TensorOutline& other = found->second.outline;
    if (tensor.outline.shape != other.shape || !is_float(tensor.outline) || !is_float(other)) {
      pairs.mismatched.push_back({name, text_of(tensor.outline), text_of(other)});
      continue;
    }
    pairs.same_shape.emplace_back(&tensor, &found->second);
    pairs.bytes += value_count(tensor.outline) * sizeof(float);
  }
  for (const auto& [name, tensor] : b) {
    if (!met.contains(name)) pairs.mismatched.push_back({name, "", text_of(tensor.outline)});
  }
  std::ranges::stable_sort(pairs.mismatched, {}, &MismatchedTensor::name);
  return pairs;
}

}  // namespace

bool is_equal_to_the_bit(const Difference& difference) {
  return difference.mismatched.empty() &&
         std::ranges::all_of(difference.tensors, [](const TensorDifference& tensor) {
           return tensor.differing == 0 && tensor.dtype_a == tensor.dtype_b;
         });
}

Result<TensorDifference> difference_of_tensors(const CheckpointReader& reader_a,
                                               const StoredTensor& a,
                                               const CheckpointReader& reader_b,
                                               const StoredTensor& b,
                                               WorkObserver& watch) {
  TensorDifference difference{.name = a.outline.name,
                              .shape = a.outline.shape,
                              .dtype_a = a.outline.dtype,
                              .dtype_b = b.outline.dtype,
                              .values = value_count(a.outline)};
  StoredValues stream_a(reader_a, a);
  StoredValues stream_b(reader_b, b);
  Sums sums;
  std::vector<float> values_a;
  std::vector<float> values_b;
  for (std::uint64_t done = 0; done < difference.values; done += values_a.size()) {
    values_a.resize(std::min<std::uint64_t>(kPieceValues, difference.values - done));
    values_b.resize(values_a.size());
    MOTLEY_TRY(stream_a.next(values_a));
    MOTLEY_TRY(stream_b.next(values_b));
    sums.add(values_a, values_b);
    MOTLEY_TRY(watch.advance(values_a.size() * sizeof(float)));
  }
  sums.write_to(difference);
  return difference;
}

Result<Difference> difference_of(const CheckpointReader& a,
                                 const CheckpointReader& b,
                                 bool with_optimizer,
                                 WorkObserver& watch) {
  const Tensors tensors_a = tensors_of(a, with_optimizer);
  const Tensors tensors_b = tensors_of(b, with_optimizer);
  Pairs pairs = pairs_of(tensors_a, tensors_b, b);
  Difference difference{.tensors = {}, .mismatched = std::move(pairs.mismatched)};
  watch.begin("comparing", pairs.bytes);
  for (const auto& [tensor_a, tensor_b] : pairs.same_shape) {
    MOTLEY_ASSIGN(TensorDifference one, difference_of_tensors(a, *tensor_a, b, *tensor_b, watch));
    difference.tensors.push_back(std::move(one));
  }
  std::ranges::stable_sort(difference.tensors, std::ranges::greater{}, &TensorDifference::relative);
  return difference;
}

}  // namespace motley
