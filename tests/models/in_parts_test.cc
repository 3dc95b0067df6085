// Kernels have the same bits for any number of threads.
#include "models/kernels/in_parts.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "base/philox.h"
#include "models/kernels/kernels.h"
#include "models/kernels/torch_threads.h"

namespace motley::kernels {
namespace {

constexpr int kThreadsMax = 8;

class OneThread {
 public:
  OneThread() = default;
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

  ~OneThread() { set_compute_threads(1); }
};

RC_GTEST_PROP(InParts, VisitsEachPlaceOnceOnAnyNumberOfThreads, ()) {
  const OneThread at_the_end;
  const auto count = *rc::gen::inRange<std::int64_t>(0, 5000);
  const auto grain = *rc::gen::inRange<std::int64_t>(1, 600);
  for (int threads = 1; threads <= kThreadsMax; ++threads) {
    set_compute_threads(threads);
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    std::atomic<bool> misplaced = false;
    in_parts(count, grain, [&](std::int64_t first, std::int64_t last) {
      if (first % grain != 0 || first >= last) misplaced = true;
      for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    RC_ASSERT(!misplaced);
    for (const auto& each : visits) RC_ASSERT(each == 1);
  }
}

TEST(InParts, RunOnSeveralThreadsAtOnce) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "on one thread there";
#endif
  const OneThread at_the_end;
  set_compute_threads(2);
  std::atomic<int> parts = 0;
  in_parts(100, 1, [&](std::int64_t, std::int64_t) { ++parts; });
  EXPECT_EQ(parts, 2);
}

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::uint64_t key = 0;

  [[nodiscard]] std::vector<float> values(std::uint64_t which) const {
    std::vector<float> drawn(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      drawn[i] = 8 * to_unit_float(philox4x32(key, which, i)[0]) - 4;
    }
    return drawn;
  }
};

void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// The results of every kernel on a matrix.
std::vector<float> outcome_of(const Matrix& matrix) {
  const auto [rows, columns, key] = matrix;
  std::vector<float> all;
  std::vector<float> u = matrix.values(0);
  std::vector<float> g(u.size());
  const std::vector<float> grad = matrix.values(1);
  bias_gelu(u.data(), grad.data(), g.data(), rows, columns);
  append(all, g);
  std::vector<float> slope = grad;
  gelu_backward(u.data(), slope.data(), rows * columns);
  append(all, u);
  append(all, slope);
  const std::int64_t seen = std::min(rows, columns);
  std::vector<float> p = matrix.values(2);
  causal_softmax(p.data(), seen, columns, columns, columns - seen);
  append(all, p);
  std::vector<float> grad_scores = grad;
  softmax_backward(p.data(), grad_scores.data(), rows, columns, columns);
  append(all, grad_scores);
  std::vector<float> logits = matrix.values(3);
  std::vector<std::int64_t> targets(static_cast<std::size_t>(rows));
  for (std::size_t r = 0; r < targets.size(); ++r) {
    targets[r] = static_cast<std::int64_t>(r) * 7 % columns;
  }
  const double loss = cross_entropy(logits.data(), targets.data(), rows, columns, true);
  append(all, logits);
  std::vector<float> sums(static_cast<std::size_t>(columns), 1.0F);
  add_column_sums(grad.data(), sums.data(), rows, columns);
  append(all, sums);
  const auto high = static_cast<float>(loss);
  append(all, {high, static_cast<float>(loss - static_cast<double>(high))});
  return all;
}

RC_GTEST_PROP(KernelsInParts, HaveTheSameBitsForAnyNumberOfThreads, ()) {
  const OneThread at_the_end;
  const Matrix matrix{*rc::gen::inRange<std::int64_t>(1, 300),
                      *rc::gen::inRange<std::int64_t>(1, 600),
                      *rc::gen::arbitrary<std::uint64_t>()};
  set_compute_threads(1);
  const std::vector<float> expected = outcome_of(matrix);
  for (int threads = 2; threads <= kThreadsMax; ++threads) {
    set_compute_threads(threads);
    const std::vector<float> outcome = outcome_of(matrix);
    RC_ASSERT(std::memcmp(outcome.data(), expected.data(), expected.size() * sizeof(float)) == 0);
  }
}

}  // namespace
}  // namespace motley::kernels
