#include "profiling/allreduce_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/hash.h"
#include "pipeline/collectives/feedback_encoder.h"

namespace motley {
namespace {

constexpr AllreduceId kMeasured{};
constexpr AllreduceId kLeftOver{.chunk = ChunkId{1}};
// The number of values all-reduced again without compression; small, so that it hardly adds to a
// run.
constexpr std::size_t kCheckedValues = std::size_t{1} << 14;

// Between -1 and 1, in steps of 2^-8: sums over up to 65,536 ranks are exact in any order.
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

// Compares sums over `times` runs with the exact values.
double largest_error(const AllreducePlan& plan, std::span<const float> sums, int times) {
  double largest = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float exact = 0;
    for (Rank rank{0}; rank.value < rank_count(plan); ++rank.value) exact += value_of(rank, i);
    largest = std::max(largest,
                       std::abs(static_cast<double>(sums[i]) - static_cast<double>(exact) * times));
  }
  return largest;
}

// Counts the values and bytes that pass through an encoder.
class CountingEncoder final : public SliceEncoder {
 public:
  explicit CountingEncoder(SliceEncoder& encoder) : encoder_(encoder) {}

  std::size_t bytes_max(std::size_t count) const override { return encoder_.bytes_max(count); }

  std::size_t encode(const WireSlice& slice,
                     std::span<float> values_N,
                     std::span<std::byte> wire_B) override {
    const std::size_t bytes = encoder_.encode(slice, values_N, wire_B);
    values_ += static_cast<double>(values_N.size());
    bytes_ += static_cast<double>(bytes);
    return bytes;
  }

  void begin_reduction(const WireSlice& slice, std::span<float> values_N) override {
    encoder_.begin_reduction(slice, values_N);
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    return encoder_.decode(wire_B, values_N);
  }

  Result<void> decode_add(std::span<const std::byte> wire_B,
                          std::span<float> sum_N) const override {
    return encoder_.decode_add(wire_B, sum_N);
  }

  [[nodiscard]] double bytes_per_value() const { return values_ > 0 ? bytes_ / values_ : 0; }

 private:
  SliceEncoder& encoder_;
  double values_ = 0;
  double bytes_ = 0;
};

// The number of values that the rank sends to other machines in a run.
double values_out(const AllreducePlan& plan, Rank self) {
  double values = 0;
  for (const ReduceMessage& message : plan.all_messages()) {
    if (message.from != self || plan.machine_of(message.to) == plan.machine_of(self)) continue;
    values += static_cast<double>(message.values.count);
  }
  return values;
}

// The measured all-reduces of one rank, run by run.
class AllreduceBench {
 public:
  AllreduceBench(FrameLink& link,
                 Rank self,
                 const AllreducePlan& plan,
                 const HierarchicalAllreduceOptions& options)
      : link_(link), self_(self), plan_(plan), options_(options) {}

  Result<AllreduceSample> measure(const CompressorOptions& compression, int runs) {
    MOTLEY_ASSIGN(const auto feedback, FeedbackEncoder::make(compression));
    CountingEncoder encoder(*feedback);
    MOTLEY_ASSIGN(const auto sum,
                  HierarchicalAllreduce::make(link_, self_, kMeasured, plan_, encoder, options_));
    values_.resize(plan_.value_count());
    std::vector<float> all_runs(std::min(plan_.value_count(), kCheckedValues));
    AllreduceSample sample;
    for (int run = 0; run <= runs; ++run) {
      MOTLEY_ASSIGN(const double took_s, run_once(run, *sum, sample));
      if (run > 0) sample.runs_s.push_back(took_s);
      for (std::size_t i = 0; i < all_runs.size(); ++i) all_runs[i] += values_[i];
    }
    sample.bytes_out = values_out(plan_, self_) * encoder.bytes_per_value();
    sample.largest_error = largest_error(plan_, values_, 1);
    MOTLEY_TRY(add_left_over(*feedback, all_runs));
    sample.lost_error = largest_error(plan_, all_runs, runs + 1);
    return sample;
  }

 private:
  // Returns the duration of the all-reduce in seconds.
  Result<double> run_once(int run, HierarchicalAllreduce& sum, AllreduceSample& sample) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = value_of(self_, i);
    MOTLEY_TRY(meet(0));
    const double start_cpu_s = process_cpu_s();
    const double start_s = now_s();
    MOTLEY_ASSIGN(sample.wait_s, sum.run(run + 1, values_));
    const double took_s = now_s() - start_s;
    sample.cpu_s = process_cpu_s() - start_cpu_s;
    MOTLEY_ASSIGN(const auto hashes, meet(hash64(std::as_bytes(std::span(values_)))));
    if (std::ranges::any_of(hashes, [&](const auto& other) { return other != hashes.front(); })) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the results of the ranks differ after run {}", run),
                   "the order of the additions differs between them", "please report this bug"};
    }
    return took_s;
  }

  // Adds the residuals of all ranks, all-reduced without compression.
  Result<void> add_left_over(FeedbackEncoder& feedback, std::span<float> all_runs) {
    std::ranges::fill(values_, 0.0F);
    feedback.add_feedback(FeedbackKind::kResidual, values_);
    MOTLEY_ASSIGN(const auto exact, FeedbackEncoder::make({}));
    const AllreducePlan plan(plan_.machines(), all_runs.size(), kBucketValues);
    MOTLEY_ASSIGN(const auto sum,
                  HierarchicalAllreduce::make(link_, self_, kLeftOver, plan, *exact, options_));
    const auto stored = std::span(values_).first(all_runs.size());
    MOTLEY_TRY(sum->run(1, stored));
    for (std::size_t i = 0; i < all_runs.size(); ++i) all_runs[i] += stored[i];
    return {};
  }

  // A barrier over all ranks; returns the value passed by each of them.
  Result<std::vector<std::vector<std::byte>>> meet(std::uint64_t given) {
    return all_gather_small(link_, self_, rank_count(plan_), ++collective_checks_,
                            std::as_bytes(std::span(&given, 1)), sizeof given,
                            options_.stall_timeout.deadline());
  }

  FrameLink& link_;
  const Rank self_;
  const AllreducePlan& plan_;
  const HierarchicalAllreduceOptions options_;
  std::vector<float> values_;
  std::int64_t collective_checks_ = 0;
};

}  // namespace

Result<AllreduceSample> measure_allreduce(FrameLink& link,
                                          Rank self,
                                          const AllreducePlan& plan,
                                          const CompressorOptions& compression,
                                          const HierarchicalAllreduceOptions& options,
                                          int runs) {
  return AllreduceBench(link, self, plan, options).measure(compression, runs);
}

}  // namespace motley
