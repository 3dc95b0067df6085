// StageVotes: what a rank says before each step, what it hears of the others, and the step that all
// then take alike. Used by the compute thread alone.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "pipeline/execute/batch_position.h"
#include "pipeline/schedule/step_effect.h"

namespace motley {

class StageVotes {
 public:
  virtual ~StageVotes() = default;

  // What this rank gives to the vote on the batch that it has just computed: at most
  // vote_bytes_max() bytes.
  [[nodiscard]] virtual std::size_t vote_bytes_max() const = 0;
  virtual std::vector<std::byte> vote(const BatchPosition& position) = 0;
  // Every rank's vote, [Rank], before the step. Not trusted: kCorrupt when one is malformed;
  // kInternal when ranks that must agree do not.
  [[nodiscard]] virtual Result<void> count_votes(
      const std::vector<std::vector<std::byte>>& votes) = 0;
  // Updates the parameters or not, as the votes say.
  virtual StepEffect step() = 0;
};

}  // namespace motley
