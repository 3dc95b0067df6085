#include "pipeline/allreduce_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/hash.h"

namespace motley {
namespace {

// Between -1 and 1, in steps of 2^-8: sums of up to 65,536 ranks are exact in any order.
float value_of(Rank rank, std::size_t i) {
  const std::uint32_t mixed =
      (static_cast<std::uint32_t>(i) + 7919U * static_cast<std::uint32_t>(rank.value)) *
      2654435761U;
  return static_cast<float>(static_cast<std::int32_t>(mixed >> 23) - 256) / 256.0F;
}

int rank_count(const AllreducePlan& plan) {
  std::size_t count = 0;
  for (const std::vector<Rank>& members : plan.machines()) count += members.size();
  return static_cast<int>(count);
}

double largest_error(const AllreducePlan& plan, std::span<const float> sums) {
  double largest = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float exact = 0;
    for (Rank rank{0}; rank.value < rank_count(plan); ++rank.value) exact += value_of(rank, i);
    largest = std::max(largest, std::abs(static_cast<double>(sums[i]) - exact));
  }
  return largest;
}

// Returns when all ranks have called it, with what each of them gave.
Result<std::vector<std::vector<std::byte>>> meet(FrameLink& link,
                                                 Rank self,
                                                 const AllreducePlan& plan,
                                                 std::int64_t step,
                                                 std::uint64_t given,
                                                 double timeout_s) {
  return all_gather_small(link, self, rank_count(plan), step, std::as_bytes(std::span(&given, 1)),
                          sizeof given, Deadline::after_s(timeout_s));
}

}  // namespace

Result<AllreduceSample> measure_allreduce(FrameLink& link,
                                          Rank self,
                                          const AllreducePlan& plan,
                                          const Codec& codec,
                                          const HierarchicalSumOptions& options,
                                          int runs) {
  CodecEncoder encoder(codec);
  MOTLEY_ASSIGN(const auto sum, HierarchicalSum::make(link, self, SumId{}, plan, encoder, options));
  std::vector<float> values(plan.value_count());
  AllreduceSample sample;
  for (int run = 0; run <= runs; ++run) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(self, i);
    MOTLEY_TRY(meet(link, self, plan, 2 * run, 0, options.timeout_s));
    const double start_cpu_s = process_cpu_s();
    const double start_s = now_s();
    MOTLEY_ASSIGN(sample.wait_s, sum->run(2 * run, values));
    if (run > 0) sample.runs_s.push_back(now_s() - start_s);
    sample.cpu_s = process_cpu_s() - start_cpu_s;
    const std::uint64_t hash = hash64(std::as_bytes(std::span(values)));
    MOTLEY_ASSIGN(const auto hashes, meet(link, self, plan, 2 * run + 1, hash, options.timeout_s));
    if (std::ranges::any_of(hashes, [&](const auto& other) { return other != hashes.front(); })) {
      return Error{ErrorCode::kCorrupt, fmt::format("the ranks' sums differ after run {}", run),
                   "the order of adding is not the same on all of them", "report this"};
    }
  }
  sample.largest_error = largest_error(plan, values);
  return sample;
}

}  // namespace motley
