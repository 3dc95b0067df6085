// CollectiveChecks: checks the collective actions of a schedule that is interpreted without
// computing: R (all-reduce over the replicas of a chunk), T (of the tied gradients) and V (vote),
// and the update after the vote. A collective waits until all its members have reached it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/check_result.h"

namespace motley {

class CollectiveChecks {
 public:
  // Copies what it needs of the schedule. tied_across_ranks: several ranks use a tied parameter.
  CollectiveChecks(const Schedule& schedule,
                   const ActionRules& rules,
                   bool training,
                   bool tied_across_ranks);

  // Tries the action at position `at` of the list of `here`; may be called again while it waits.
  // The vote fails while an all-reduce of the rank is missing.
  [[nodiscard]] CheckResult reduce(Rank here, std::size_t at, ChunkId chunk);
  [[nodiscard]] CheckResult reduce_tied(Rank here, std::size_t at);
  [[nodiscard]] CheckResult vote(Rank here, std::size_t at);
  [[nodiscard]] CheckResult step(Rank here);

  // Checks that an action of the kind at position `at` breaks no rule about what may follow the
  // rank's vote and update.
  [[nodiscard]] CheckResult check_not_ended(Rank here, std::size_t at, ActionKind kind) const;

  // After the last action: a vote or an update that some rank lacks, in words; nullopt = none.
  [[nodiscard]] std::optional<std::string> missing() const;

 private:
  // [Rank] position of a collective in its list, once the rank has reached it.
  using Positions = std::vector<std::optional<std::size_t>>;

  // Records that the rank has reached the collective, which it may do once, and waits for the
  // others.
  [[nodiscard]] static CheckResult arrive(Positions& positions,
                                          const std::vector<Rank>& members,
                                          Rank here,
                                          std::size_t at);
  [[nodiscard]] std::optional<std::string> missing_allreduce(Rank here) const;

  const bool training_;
  const bool tied_;
  std::vector<LastChanges> last_changes_;             // [Rank]
  std::vector<std::vector<Rank>> replicas_;           // [ChunkId] the ranks with a replica
  std::vector<std::vector<ChunkId>> reduced_chunks_;  // [Rank] the chunks that it all-reduces
  std::map<ChunkId, Positions> reduced_at_;
  std::vector<Rank> tied_ranks_;
  Positions tied_at_;
  Positions vote_at_;
  std::size_t voted_ = 0;      // all ranks below this one have reached their V
  std::vector<bool> stepped_;  // [Rank]
};

}  // namespace motley
