#include "training/optimizer/muon.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "training/optimizer/fixed_order_product.h"
#include "training/optimizer/optimizer.h"

namespace motley {
namespace {

// Enough work to repay starting a thread.
constexpr std::int64_t kPartFloats = 1 << 16;

// to_NM = from_MNᵀ, in blocks that fit the cache.
void transpose(const float* from, float* to, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t i = 0; i < m; i += kBlock) {
    for (std::int64_t j = 0; j < n; j += kBlock) {
      for (std::int64_t r = i; r < std::min(i + kBlock, m); ++r) {
        for (std::int64_t c = j; c < std::min(j + kBlock, n); ++c) to[c * m + r] = from[r * n + c];
      }
    }
  }
}

// Sums in the order of the values.
double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// to = a x + b y
void combine(float a,
             const std::vector<float>& x,
             float b,
             const std::vector<float>& y,
             std::vector<float>& to,
             const InParts& in_parts) {
  in_parts(std::ssize(to), kPartFloats, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      to[i] = a * x[i] + b * y[i];
    }
  });
}

}  // namespace

void orthogonalize(std::span<float> u, const MatrixShape& shape, const InParts& in_parts) {
  const bool is_tall = shape.rows > shape.columns;
  const std::int64_t m = std::min(shape.rows, shape.columns);
  const std::int64_t n = std::max(shape.rows, shape.columns);
  const float norm = std::max(static_cast<float>(norm_of(u)), kNewtonSchulzEpsilon);
  std::vector<float> x(u.size());
  if (is_tall) {
    transpose(u.data(), x.data(), n, m);
  } else {
    std::ranges::copy(u, x.begin());
  }
  for (float& value : x) value /= norm;
  std::vector<float> product(u.size());
  std::vector<float> gram(static_cast<std::size_t>(m * m));
  std::vector<float> square(gram.size());
  const auto [a, b, c] = kNewtonSchulz;
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    fixed_order_gram(x.data(), gram.data(), m, n, in_parts);
    // A symmetric matrix times its transpose is its square.
    fixed_order_gram(gram.data(), square.data(), m, m, in_parts);
    combine(b, gram, c, square, gram, in_parts);
    fixed_order_product(gram.data(), x.data(), product.data(), m, m, n, in_parts);
    combine(a, x, 1.0F, product, x, in_parts);
  }
  if (is_tall) {
    transpose(x.data(), u.data(), m, n);
  } else {
    std::ranges::copy(x, u.begin());
  }
}

double orthogonal_flops(const MatrixShape& shape) {
  const auto m = static_cast<double>(std::min(shape.rows, shape.columns));
  const auto n = static_cast<double>(std::max(shape.rows, shape.columns));
  // Half of each symmetric product is computed.
  return kNewtonSchulzSteps * (3 * m * m * n + m * m * m);
}

double Muon::kept(const UpdateArguments& arguments) const {
  return 1 - arguments.factors.lr * (decay_ * arguments.decay_factor);
}

double Muon::rate(const UpdateArguments& arguments, const MatrixShape& shape) {
  const auto larger = static_cast<double>(std::max(shape.rows, shape.columns));
  return arguments.factors.lr * (0.2 * std::sqrt(larger));
}

void Muon::update(std::span<float> values,
                  std::span<const float> gradients,
                  std::span<float> moment,
                  const MatrixShape& shape,
                  const UpdateArguments& arguments,
                  const InParts& in_parts) const {
  const auto count = static_cast<std::size_t>(shape.rows * shape.columns);
  MOTLEY_CHECK(values.size() == count && gradients.size() == count && moment.size() == count,
               "{} values, {} gradients and a moment of {} for {} x {}", values.size(),
               gradients.size(), moment.size(), shape.rows, shape.columns);
  const auto momentum = static_cast<float>(momentum_);
  const auto rest = static_cast<float>(1 - momentum_);
  const auto keep = static_cast<float>(kept(arguments));
  const auto step = static_cast<float>(rate(arguments, shape));
  const float scale = arguments.gradient_scale;
  std::vector<float> u(count);
  in_parts(std::ssize(values), kPartFloats, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const float g = gradients[i] * scale;
      moment[i] = moment[i] * momentum + rest * g;
      u[i] = moment[i] * momentum + rest * g;
    }
  });
  orthogonalize(u, shape, in_parts);
  in_parts(std::ssize(values), kPartFloats, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      values[i] = values[i] * keep - step * u[i];
    }
  });
}

}  // namespace motley
