// CollectiveChecks: checks the collective actions of a schedule that is interpreted without
// computing: R (all-reduce over the replicas of a chunk), T (of the tied gradients) and V (vote),
// the update after the vote, and O and A (offer of pseudo-gradients and adoption) after that. A
// collective waits until all its members have reached it.
#pragma once

#include <cstddef>
#include <cstdint>
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
  [[nodiscard]] CheckResult offer(Rank here);
  [[nodiscard]] CheckResult adopt(Rank here, std::size_t at);

  // Checks that an action of the kind at position `at` breaks no rule about what may follow the
  // rank's vote and update.
  [[nodiscard]] CheckResult check_not_ended(Rank here, std::size_t at, ActionKind kind) const;

  // After the last action: a vote or an update that some rank lacks, or an offer or adoption that
  // only some ranks have, in words; nullopt = none.
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

  // The last of the actions that end a step. An adoption may also be of an earlier step's offer.
  enum class End : std::uint8_t { kNone, kVoted, kStepped, kOffered, kAdoptedEarlier, kAdopted };

  // The group of the rank; nullptr if it is in none.
  [[nodiscard]] static const std::vector<Rank>* group_of(
      const std::vector<std::vector<Rank>>& groups, Rank rank);

  const bool training_;
  const bool has_islands_;
  const std::size_t end_ranks_;                           // those that would hold a tied parameter
  std::vector<LastChanges> last_changes_;                 // [Rank]
  std::vector<std::vector<std::vector<Rank>>> replicas_;  // [ChunkId] the groups that reduce it
  std::vector<std::vector<ChunkId>> reduced_chunks_;      // [Rank] the chunks that it all-reduces
  std::map<ChunkId, Positions> reduced_at_;
  std::vector<std::vector<Rank>> tied_groups_;  // empty unless tied gradients are reduced
  Positions tied_at_;
  Positions vote_at_;
  Positions adopted_at_;
  std::size_t voted_ = 0;  // all ranks below this one have reached their V
  std::vector<End> ends_;  // [Rank]
};

}  // namespace motley
