#include "models/package/reference/tensor_digest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "models/package/reference/hashed_values.h"

namespace motley {
namespace {

// One in this many samples may be arbitrarily far off, because of a ReLU or a maximum that flipped.
constexpr std::size_t kOutliers = 8;

double finite_or_0(double x) {
  return std::isfinite(x) ? x : 0;
}

// The deviation of the samples, without outliers.
double samples_apart(const TensorDigest& found, const TensorDigest& right) {
  std::vector<double> apart;
  for (std::size_t i = 0; i < std::min(found.samples.size(), right.samples.size()); ++i) {
    apart.push_back(std::abs(found.samples[i] - right.samples[i]));
  }
  if (apart.empty()) return 0;
  std::ranges::sort(apart, std::greater());
  return apart[apart.size() / kOutliers];
}

}  // namespace

TensorDigest digest_of(std::span<const float> values, std::uint64_t seed, std::size_t samples) {
  TensorDigest digest;
  digest.count = values.size();
  const HashedStream signs(seed, StreamPurpose::kSigns);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      ++digest.nonfinite;
      continue;
    }
    const double x = values[i];
    squares += x * x;
    digest.largest = std::max(digest.largest, std::abs(x));
    const std::uint64_t drawn = signs.bits(i);
    for (std::size_t k = 0; k < TensorDigest::kProjections; ++k) {
      digest.projections[k] += (drawn >> k & 1) != 0 ? -x : x;
    }
  }
  digest.norm = std::sqrt(squares);
  for (const std::size_t place : sampled_places(seed, values.size(), samples)) {
    digest.samples.push_back(finite_or_0(values[place]));
  }
  return digest;
}

double deviation(const TensorDigest& found, const TensorDigest& right, double least) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (found.count != right.count || found.nonfinite != right.nonfinite) return kInfinite;
  double squares = 0;
  for (std::size_t k = 0; k < TensorDigest::kProjections; ++k) {
    squares += std::pow(found.projections[k] - right.projections[k], 2);
  }
  const double root = std::sqrt(static_cast<double>(right.count));
  const double apart =
      std::max({std::sqrt(squares / TensorDigest::kProjections), samples_apart(found, right) * root,
                std::abs(found.norm - right.norm)});
  const double largest = std::abs(found.largest - right.largest);
  if (apart == 0 && largest == 0) return 0;
  const double scale = std::max(right.norm, least);
  if (scale == 0) return kInfinite;
  return std::max(apart / scale, largest / std::max(right.largest, scale / root));
}

}  // namespace motley
