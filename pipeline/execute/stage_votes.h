// StageVotes: a rank's vote before each step, its evaluation of all votes, and the step, which all
// ranks then take alike. Used by the compute thread alone.
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

  // This rank's vote on the batch that it has just computed: at most vote_bytes_max() bytes.
  [[nodiscard]] virtual std::size_t vote_bytes_max() const = 0;
  virtual std::vector<std::byte> vote(const BatchPosition& position) = 0;
  // Evaluates every rank's vote, [Rank], before the step. Untrusted: kCorrupt if one is malformed,
  // kInternal if ranks that must agree do not.
  [[nodiscard]] virtual Result<void> count_votes(
      const std::vector<std::vector<std::byte>>& votes) = 0;
  // Updates the parameters, or skips the update, according to the votes.
  virtual StepEffect step() = 0;
};

}  // namespace motley
