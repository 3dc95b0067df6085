// CollectiveChecks: where ranks meet while a schedule is run without computing: R, T and V, and the
// update behind the vote. Whoever comes waits for all others who take part.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/action_rules.h"
#include "pipeline/schedule/verdict.h"

namespace motley {

class CollectiveChecks {
 public:
  // The schedule is lent. tied_across_ranks: several ranks hold a use of a tied parameter.
  CollectiveChecks(const Schedule& schedule,
                   const ActionRules& rules,
                   bool training,
                   bool tied_across_ranks);

  // Tries an action that stands at `at` in the list of `here`. The vote comes after everything that
  // the rank has to do.
  [[nodiscard]] Verdict reduce(Rank here, std::size_t at, ChunkId chunk);
  [[nodiscard]] Verdict reduce_tied(Rank here, std::size_t at);
  [[nodiscard]] Verdict vote(Rank here, std::size_t at);
  [[nodiscard]] Verdict step(Rank here);

  // Whether any action of the kind may stand at `at`, as to the vote and the update.
  [[nodiscard]] Verdict check_not_over(Rank here, std::size_t at, ActionKind kind) const;

  // What ends a step and did not come.
  [[nodiscard]] std::optional<std::string> missing() const;

 private:
  using Places = std::vector<std::optional<std::size_t>>;  // [Rank] in its list, once it came

  // Notes that the rank has come, once, and waits for the others.
  [[nodiscard]] static Verdict meet(Places& places,
                                    const std::vector<Rank>& members,
                                    Rank here,
                                    std::size_t at);
  [[nodiscard]] std::optional<std::string> missing_sum(Rank here) const;

  const bool training_;
  const bool tied_;
  std::vector<LastChanges> last_changes_;        // [Rank]
  std::vector<std::vector<Rank>> holders_;       // [ChunkId]
  std::vector<std::vector<ChunkId>> summed_on_;  // [Rank] the chunks that it has replicas of
  std::map<ChunkId, Places> reduced_;
  std::vector<Rank> tied_ranks_;
  Places tied_at_;
  Places vote_at_;
  std::size_t voted_ = 0;      // the ranks below have come to their V
  std::vector<bool> stepped_;  // [Rank]
};

}  // namespace motley
