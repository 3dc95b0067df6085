// AllreducePlan: the messages of an all-reduce over ranks of one or several machines. Pure data:
// pipeline/collectives/hierarchical_allreduce.h executes it, and the planner and the simulator
// price the same messages.
//
// Values cross the slow links between machines as few times as possible. Terms, from large to
// small:
//   part     of a machine: what it adds up for all machines; faster links get larger parts
//   bucket   a piece of a part that is all-reduced as a unit, so that several are in flight; those
//            of different parts alternate, from the last value to the first: the order in which
//            a backward finishes them
//   slice    of a place (local rank): one rank's range of the bucket, equal for all ranks of the
//            machine; cut the same way on every machine that has as many ranks
//   segment  the longest piece that no slice's edge cuts: it has one rank on each machine, and is
//            what one message between machines carries
// A bucket has four phases:
//   local reduce-scatter  each rank of a machine sends the others their slices, which they add up
//   cross reduce-scatter  each machine's sums go to the machine that owns the part, which adds them
//   cross all-gather      the owner sends the sums to all other machines
//   local all-gather      each rank of a machine sends its slice of the sums to the others
// Of n values, a machine of h sends n - part + part (h - 1), which is 2 n (h - 1) / h for equal
// parts. This is the minimum, and does not grow with the ranks of a machine. Of machines with
// unequal links the slowest sends least, down to n if it has no part: the parts minimise the time
// at which the last machine finishes. Two machines need no owner: each sends all its sums to the
// other (cross reduce-scatter) and both add them up. This takes as many bytes, one latency less,
// and with a lossy codec one rounding less.
//
// Everything is cut at multiples of kGrain, the block of the quantising codecs; a shorter remainder
// goes to the first. Empty messages are not in the plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace motley {

struct ValueRange {
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] std::size_t end() const { return first + count; }

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

enum class ReducePhase : std::uint8_t {
  kLocalReduceScatter,
  kCrossReduceScatter,
  kCrossAllGather,
  kLocalAllGather
};
inline constexpr std::size_t kReducePhases = 4;

struct ReduceMessage {
  ReducePhase phase = ReducePhase::kLocalReduceScatter;
  Rank from;
  Rank to;
  ValueRange values;

  friend bool operator==(const ReduceMessage&, const ReduceMessage&) = default;
};

struct ReduceBucket {
  ValueRange values;
  std::size_t owner = 0;  // machine; the first of one or two machines
};

// Buckets of one owner and one size, whose messages have equal sizes.
struct AlikeBuckets {
  std::size_t values = 0;  // of each
  std::size_t owner = 0;
  std::size_t count = 0;
};

// [machine][place], ascending.
using RanksByMachine = std::vector<std::vector<Rank>>;

// Machines in the order of their first ranks. REQUIRES: ranks ascend.
[[nodiscard]] RanksByMachine ranks_by_machine(
    std::span<const Rank> ranks, const std::function<const std::string&(Rank)>& machine_of);

// Values in a bucket of gradients: large enough to make the fixed cost of a message negligible, and
// small enough to do the same for the first and the last bucket, during which a link is idle.
inline constexpr std::size_t kBucketValues = std::size_t{1} << 16;

class AllreducePlan {
 public:
  static constexpr std::size_t kGrain = 128;
  static constexpr std::size_t kWhole = SIZE_MAX;  // as bucket_values_max: each part is one bucket

  // For `count` values that each of the ranks holds. link_speeds: [machine], from 1 to 10^9, in any
  // unit; empty: all are equally fast. REQUIRES: no machine is empty, bucket_values_max > 0.
  AllreducePlan(RanksByMachine machines,
                std::size_t count,
                std::size_t bucket_values_max,
                std::span<const std::int64_t> link_speeds = {});

  [[nodiscard]] std::size_t value_count() const { return value_count_; }

  [[nodiscard]] const RanksByMachine& machines() const { return machines_; }

  // In the order in which they begin. Together they cover all values, each once.
  [[nodiscard]] const std::vector<ReduceBucket>& buckets() const { return buckets_; }

  // The buckets of this plan if it were cut into buckets of at most that many values, without a
  // list of them all, which would be long for a large model. REQUIRES: the plan was made with
  // kWhole.
  [[nodiscard]] std::vector<AlikeBuckets> cut_further(std::size_t bucket_values_max) const;

  // Phase after phase; those of a phase by sender. A rank first sends to the machine (or local
  // rank) after its own, so that not all send to the same one at the same time.
  [[nodiscard]] std::vector<ReduceMessage> messages(const ReduceBucket& bucket) const;

  // The messages of all buckets, in the same order as if they were one.
  [[nodiscard]] std::vector<ReduceMessage> all_messages() const;

  // REQUIRES: the rank is in the plan.
  [[nodiscard]] std::size_t machine_of(Rank rank) const { return location_of(rank).machine; }

  [[nodiscard]] std::size_t local_rank_of(Rank rank) const { return location_of(rank).local_rank; }

 private:
  struct Location {
    std::size_t machine = SIZE_MAX;  // SIZE_MAX for a rank that is not in the plan
    std::size_t local_rank = 0;
  };

  struct Segment {
    ValueRange values;
    std::vector<Rank> ranks;  // [machine]
  };

  [[nodiscard]] const Location& location_of(Rank rank) const;
  void cut_into_buckets(std::size_t bucket_values_max, std::span<const std::int64_t> link_speeds);
  [[nodiscard]] std::vector<Segment> segments_of(ValueRange values) const;
  void add_inside(ReducePhase phase, ValueRange values, std::vector<ReduceMessage>& to) const;
  void add_between(const ReduceBucket& bucket, std::vector<ReduceMessage>& to) const;
  void sort(std::vector<ReduceMessage>& messages) const;

  RanksByMachine machines_;
  std::vector<Location> locations_;  // [Rank]
  std::size_t value_count_;
  std::vector<ReduceBucket> buckets_;
};

// The slice of local rank `local_rank` if `local_ranks` ranks share the values.
[[nodiscard]] ValueRange slice_of(ValueRange values,
                                  std::size_t local_ranks,
                                  std::size_t local_rank);

// Values that each machine sends to other machines, and receives from them. [machine]
struct MachineTraffic {
  std::size_t out = 0;
  std::size_t in = 0;
};

[[nodiscard]] std::vector<MachineTraffic> traffic_between(const AllreducePlan& plan,
                                                          std::span<const ReduceMessage> messages);

}  // namespace motley
