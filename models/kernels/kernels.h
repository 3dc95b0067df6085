// CPU kernels of the layers, for operations without a fast or in-place form in ATen.
//
// Plain loops over fp32 memory, compiled for AVX-512, AVX2 and the baseline and chosen at start.
// Every function is deterministic and independent of memory alignment: sums run in a fixed number
// of lanes, then in a fixed order. Threads divide rows (in_parts.h), or columns if rows are summed,
// and never a sum, so the bits do not depend on their number. Other devices use ATen operations
// (models/layers/device/). Matrices are row-major and contiguous unless a stride is given. No two
// arguments overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley::kernels {

// Incremented when kernels, layers or the optimizer change in speed: stored profiles
// (profiling/cache/profile_store.h) are valid for one version.
inline constexpr int kVersion = 2;

// u_RN += bias_N; g_RN = gelu(u_RN), GELU in its tanh form.
void bias_gelu(float* u, const float* bias, float* g, std::int64_t rows, std::int64_t columns);

// Given u as bias_gelu left it and the gradient of g: grad *= gelu'(u), and u becomes gelu(u).
// Computing both together costs one exponential, so g need not be saved from forward to backward.
void gelu_backward(float* u, float* grad, std::int64_t count);

// Softmax in place of the rows of a causal score block: row r attends to columns 0 … first + r; the
// columns from there to `columns` become 0. REQUIRES: first + rows <= columns <= stride.
void causal_softmax(float* scores,
                    std::int64_t rows,
                    std::int64_t columns,
                    std::int64_t stride,
                    std::int64_t first);

// The gradient of the scores, in place of the gradient of the probabilities `grad`:
// grad = p * (grad - sum(p * grad)) in each row. Both have the given stride.
void softmax_backward(
    const float* p, float* grad, std::int64_t rows, std::int64_t columns, std::int64_t stride);

// The summed cross entropy of the rows of logits_RV against targets_R. With `gradient`, each row
// becomes its gradient, softmax - one_hot. REQUIRES: 0 <= target < vocab.
[[nodiscard]] double cross_entropy(float* logits,
                                   const std::int64_t* targets,
                                   std::int64_t rows,
                                   std::int64_t vocab,
                                   bool gradient);

// The same with weights of classes and label smoothing (models/spec/loss_options.h). weights_V:
// nullptr = all are 1.
[[nodiscard]] double weighted_cross_entropy(float* logits,
                                            const std::int64_t* targets,
                                            std::int64_t rows,
                                            std::int64_t vocab,
                                            const float* weights,
                                            double label_smoothing,
                                            bool gradient);

// ranks_R: of each row, the number of classes with a higher score than its target, or an equal one
// and a lower index. A score that is NaN is higher than all. REQUIRES: 0 <= target < vocab.
void target_ranks(const float* logits,
                  const std::int64_t* targets,
                  std::int64_t rows,
                  std::int64_t vocab,
                  std::int64_t* ranks);

// sums_N += the rows of x_RN, in the order of rows.
void add_column_sums(const float* x, float* sums, std::int64_t rows, std::int64_t columns);

// y_N += x_N.
void add_row(const float* x, float* y, std::int64_t count);

}  // namespace motley::kernels
