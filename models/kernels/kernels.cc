#include "models/kernels/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "models/kernels/in_parts.h"
#include "models/kernels/simd.h"

namespace motley::kernels {
namespace {

constexpr float kGeluScale = 0.79788456F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

// gelu(u) = u / 2 * (1 + tanh(z)) = u * sigmoid(2 z), which loses no digits where tanh nears -1.
MOTLEY_INLINE float gelu_sigmoid(float u) {
  const float z = kGeluScale * (u + kGeluCubic * u * u * u);
  return 1.0F / (1.0F + exp_fast(-2.0F * z));
}

MOTLEY_INLINE float row_max(const float* x, std::int64_t count) {
  Lanes lanes;
  lanes.fill(-INFINITY);
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = x[j + l] > lanes[l] ? x[j + l] : lanes[l];
  }
  for (int l = 0; j < count; ++j, ++l) lanes[l] = x[j] > lanes[l] ? x[j] : lanes[l];
  return fold(lanes, [](float a, float b) { return a > b ? a : b; });
}

// x = e^(x - shift); returns the sum.
MOTLEY_INLINE float exp_and_sum(float* x, std::int64_t count, float shift) {
  Lanes lanes{};
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float e = exp_fast(x[j + l] - shift);
      x[j + l] = e;
      lanes[l] += e;
    }
  }
  for (int l = 0; j < count; ++j, ++l) {
    x[j] = exp_fast(x[j] - shift);
    lanes[l] += x[j];
  }
  return fold(lanes, [](float a, float b) { return a + b; });
}

MOTLEY_INLINE float dot(const float* x, const float* y, std::int64_t count) {
  Lanes lanes{};
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += x[j + l] * y[j + l];
  }
  for (int l = 0; j < count; ++j, ++l) lanes[l] += x[j] * y[j];
  return fold(lanes, [](float a, float b) { return a + b; });
}

// The sum of weights[j] * (x[j] - shift); weights: nullptr = all are 1.
MOTLEY_INLINE double weighted_sum(const float* x,
                                  const float* weights,
                                  std::int64_t count,
                                  float shift) {
  constexpr int kDoubles = 8;
  std::array<double, kDoubles> lanes{};
  const auto term = [=](std::int64_t j) {
    return static_cast<double>(weights == nullptr ? 1.0F : weights[j]) *
           (static_cast<double>(x[j]) - static_cast<double>(shift));
  };
  std::int64_t j = 0;
  for (; j + kDoubles <= count; j += kDoubles) {
    for (int l = 0; l < kDoubles; ++l) lanes[l] += term(j + l);
  }
  for (int l = 0; j < count; ++j, ++l) lanes[l] += term(j);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

MOTLEY_INLINE void scale_row(float* x, std::int64_t count, float factor) {
  for (std::int64_t j = 0; j < count; ++j) x[j] *= factor;
}

// The least work that repays waking a thread: some microseconds. Ranges of elementwise work begin
// at whole vectors, so that each element is computed by the same instructions in any range.
constexpr std::int64_t kPartFloats = 8192;
constexpr std::int64_t kVectorFloats = 64;

std::int64_t rows_of_a_part(std::int64_t columns) {
  return std::max<std::int64_t>(1, kPartFloats / std::max<std::int64_t>(1, columns));
}

}  // namespace

// The part of each kernel that one thread computes.
namespace part {

MOTLEY_CLONES void bias_gelu(float* __restrict u,
                             const float* __restrict bias,
                             float* __restrict g,
                             std::int64_t rows,
                             std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r, u += columns, g += columns) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const float sum = u[j] + bias[j];
      u[j] = sum;
      g[j] = sum * gelu_sigmoid(sum);
    }
  }
}

MOTLEY_CLONES void gelu_backward(float* __restrict u, float* __restrict grad, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) {
    const float x = u[j];
    const float s = gelu_sigmoid(x);
    const float slope = 2.0F * kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
    u[j] = x * s;
    grad[j] *= s + x * s * (1.0F - s) * slope;
  }
}

MOTLEY_CLONES void causal_softmax(float* scores,
                                  std::int64_t rows,
                                  std::int64_t columns,
                                  std::int64_t stride,
                                  std::int64_t first) {
  for (std::int64_t r = 0; r < rows; ++r, scores += stride) {
    const std::int64_t seen = first + r + 1;
    const float sum = exp_and_sum(scores, seen, row_max(scores, seen));
    scale_row(scores, seen, 1.0F / sum);
    std::fill(scores + seen, scores + columns, 0.0F);
  }
}

MOTLEY_CLONES void softmax_backward(const float* __restrict p,
                                    float* __restrict grad,
                                    std::int64_t rows,
                                    std::int64_t columns,
                                    std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, p += stride, grad += stride) {
    const float sum = dot(p, grad, columns);
    for (std::int64_t j = 0; j < columns; ++j) grad[j] = p[j] * (grad[j] - sum);
  }
}

MOTLEY_CLONES void cross_entropy(float* logits,
                                 const std::int64_t* targets,
                                 std::int64_t rows,
                                 std::int64_t vocab,
                                 bool gradient,
                                 double* losses) {
  for (std::int64_t r = 0; r < rows; ++r, logits += vocab) {
    const float target_logit = logits[targets[r]];
    const float shift = row_max(logits, vocab);
    const float sum = exp_and_sum(logits, vocab, shift);
    losses[r] = std::log(static_cast<double>(sum)) + static_cast<double>(shift) -
                static_cast<double>(target_logit);
    if (gradient) {
      scale_row(logits, vocab, 1.0F / sum);
      logits[targets[r]] -= 1.0F;
    }
  }
}

// The terms of a loss with weights and smoothing: `weight` of a target's own class, `spread` of
// every class.
struct LossTerms {
  const float* weights;  // [vocab]; nullptr = all are 1
  double own;            // 1 - label smoothing
  double spread;         // label smoothing / classes
  double weight_sum;     // of all classes
};

MOTLEY_CLONES void weighted_cross_entropy(float* logits,
                                          const std::int64_t* targets,
                                          std::int64_t rows,
                                          std::int64_t vocab,
                                          const LossTerms& terms,
                                          bool gradient,
                                          double* losses) {
  for (std::int64_t r = 0; r < rows; ++r, logits += vocab) {
    const std::int64_t target = targets[r];
    const float shift = row_max(logits, vocab);
    const double weight = terms.weights == nullptr ? 1.0 : terms.weights[target];
    const double own = terms.own * weight;
    const double all = own + terms.spread * terms.weight_sum;
    double scores = own * (static_cast<double>(logits[target]) - static_cast<double>(shift));
    if (terms.spread > 0) {
      scores += terms.spread * weighted_sum(logits, terms.weights, vocab, shift);
    }
    const float sum = exp_and_sum(logits, vocab, shift);
    losses[r] = all * std::log(static_cast<double>(sum)) - scores;
    if (!gradient) continue;
    scale_row(logits, vocab, static_cast<float>(all) / sum);
    if (terms.spread > 0) {
      const auto spread = static_cast<float>(terms.spread);
      for (std::int64_t j = 0; j < vocab; ++j) {
        logits[j] -= spread * (terms.weights == nullptr ? 1.0F : terms.weights[j]);
      }
    }
    logits[target] -= static_cast<float>(own);
  }
}

MOTLEY_CLONES void target_ranks(const float* logits,
                                const std::int64_t* targets,
                                std::int64_t rows,
                                std::int64_t vocab,
                                std::int64_t* ranks) {
  for (std::int64_t r = 0; r < rows; ++r, logits += vocab) {
    const float score = logits[targets[r]];
    std::int64_t rank = 0;
    for (std::int64_t j = 0; j < targets[r]; ++j) rank += logits[j] < score ? 0 : 1;
    for (std::int64_t j = targets[r] + 1; j < vocab; ++j) rank += logits[j] <= score ? 0 : 1;
    ranks[r] = rank;
  }
}

// For `width` of the columns.
MOTLEY_CLONES void add_column_sums(const float* __restrict x,
                                   float* __restrict sums,
                                   std::int64_t rows,
                                   std::int64_t columns,
                                   std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += x[j];
  }
}

}  // namespace part

void bias_gelu(float* u, const float* bias, float* g, std::int64_t rows, std::int64_t columns) {
  in_parts(rows, rows_of_a_part(columns), [=](std::int64_t first, std::int64_t last) {
    part::bias_gelu(u + first * columns, bias, g + first * columns, last - first, columns);
  });
}

void gelu_backward(float* u, float* grad, std::int64_t count) {
  in_parts(count, kPartFloats, [=](std::int64_t first, std::int64_t last) {
    part::gelu_backward(u + first, grad + first, last - first);
  });
}

void causal_softmax(float* scores,
                    std::int64_t rows,
                    std::int64_t columns,
                    std::int64_t stride,
                    std::int64_t first) {
  in_parts(rows, rows_of_a_part(columns), [=](std::int64_t from, std::int64_t to) {
    part::causal_softmax(scores + from * stride, to - from, columns, stride, first + from);
  });
}

void softmax_backward(
    const float* p, float* grad, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  in_parts(rows, rows_of_a_part(columns), [=](std::int64_t first, std::int64_t last) {
    part::softmax_backward(p + first * stride, grad + first * stride, last - first, columns,
                           stride);
  });
}

double cross_entropy(float* logits,
                     const std::int64_t* targets,
                     std::int64_t rows,
                     std::int64_t vocab,
                     bool gradient) {
  std::vector<double> losses(static_cast<std::size_t>(rows));
  double* const loss_of_rows = losses.data();
  in_parts(rows, rows_of_a_part(vocab), [=](std::int64_t first, std::int64_t last) {
    part::cross_entropy(logits + first * vocab, targets + first, last - first, vocab, gradient,
                        loss_of_rows + first);
  });
  double sum = 0.0;
  for (const double loss : losses) sum += loss;
  return sum;
}

double weighted_cross_entropy(float* logits,
                              const std::int64_t* targets,
                              std::int64_t rows,
                              std::int64_t vocab,
                              const float* weights,
                              double label_smoothing,
                              bool gradient) {
  double weight_sum = 0;
  for (std::int64_t j = 0; j < vocab; ++j) weight_sum += weights == nullptr ? 1.0 : weights[j];
  const part::LossTerms terms{weights, 1 - label_smoothing,
                              label_smoothing / static_cast<double>(vocab), weight_sum};
  std::vector<double> losses(static_cast<std::size_t>(rows));
  double* const loss_of_rows = losses.data();
  in_parts(rows, rows_of_a_part(vocab), [=, &terms](std::int64_t first, std::int64_t last) {
    part::weighted_cross_entropy(logits + first * vocab, targets + first, last - first, vocab,
                                 terms, gradient, loss_of_rows + first);
  });
  double sum = 0.0;
  for (const double loss : losses) sum += loss;
  return sum;
}

void target_ranks(const float* logits,
                  const std::int64_t* targets,
                  std::int64_t rows,
                  std::int64_t vocab,
                  std::int64_t* ranks) {
  in_parts(rows, rows_of_a_part(vocab), [=](std::int64_t first, std::int64_t last) {
    part::target_ranks(logits + first * vocab, targets + first, last - first, vocab, ranks + first);
  });
}

MOTLEY_CLONES void add_row(const float* __restrict x, float* __restrict y, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) y[j] += x[j];
}

void add_column_sums(const float* x, float* sums, std::int64_t rows, std::int64_t columns) {
  const std::int64_t wanted =
      std::max(kVectorFloats, kPartFloats / std::max<std::int64_t>(1, rows));
  const std::int64_t grain = (wanted + kVectorFloats - 1) / kVectorFloats * kVectorFloats;
  in_parts(columns, grain, [=](std::int64_t first, std::int64_t last) {
    part::add_column_sums(x + first, sums + first, rows, columns, last - first);
  });
}

}  // namespace motley::kernels
