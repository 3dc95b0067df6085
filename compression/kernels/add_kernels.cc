// One source for all processors: the compiler vectorises the same loops for each target.
#include "compression/kernels/add_kernels.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace motley {
namespace {

constexpr std::uint32_t kInfinity = 0x7F800000;

[[gnu::always_inline]] inline void add_each(std::span<const float> values_N,
                                            std::span<float> sum_N) {
  const float* __restrict values = values_N.data();
  float* __restrict sum = sum_N.data();
  for (std::size_t i = 0; i < sum_N.size(); ++i) sum[i] += values[i];
}

[[gnu::always_inline]] inline void subtract_each(std::span<const float> sent_N,
                                                 std::span<float> rest_N) {
  const float* __restrict sent = sent_N.data();
  float* __restrict rest = rest_N.data();
  for (std::size_t i = 0; i < rest_N.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(rest[i] - sent[i]);
    rest[i] = std::bit_cast<float>((bits & kInfinity) == kInfinity ? 0 : bits);
  }
}

void add(std::span<const float> values_N, std::span<float> sum_N) {
  add_each(values_N, sum_N);
}

void subtract_sent(std::span<const float> sent_N, std::span<float> rest_N) {
  subtract_each(sent_N, rest_N);
}

#if defined(__x86_64__)

[[gnu::target("avx2")]] void add_avx2(std::span<const float> values_N, std::span<float> sum_N) {
  add_each(values_N, sum_N);
}

[[gnu::target("avx2")]] void subtract_sent_avx2(std::span<const float> sent_N,
                                                std::span<float> rest_N) {
  subtract_each(sent_N, rest_N);
}

#endif

}  // namespace

const AddKernels& scalar_add_kernels() {
  static constexpr AddKernels kKernels = {add, subtract_sent};
  return kKernels;
}

const AddKernels& best_add_kernels() {
#if defined(__x86_64__)
  static constexpr AddKernels kAvx2 = {add_avx2, subtract_sent_avx2};
  if (__builtin_cpu_supports("avx2")) return kAvx2;
#endif
  return scalar_add_kernels();
}

}  // namespace motley
