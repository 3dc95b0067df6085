// The vote before each step: the values from which every rank derives the same decision.
//
// Each rank sends the squared gradient norm of every layer for which it votes in its island. The
// rank with the loss also sends the sum of the loss, the number of its terms or the sum of their
// weights and, if the model counts them, the correct predictions, of an evaluation also those among
// the five highest scores. All ranks add in layer order, independently of which rank holds a layer,
// so the global norm has the same bits under every plan. Rank 0 also sends the factors of the step,
// because pow and cos differ between C libraries in their last bits. Each rank sends hashes of the
// parameters that have copies on other ranks; they stay equal only while all ranks compute the
// same. A rank that was asked to end the session reports it, so all end it after the same step.
// Rank 0 reports when a checkpoint is due by its clock, so all save the same one. Layout of the
// bytes: docs/formats/frame.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/spec/prediction_counts.h"
#include "pipeline/schedule/copy_groups.h"

namespace motley {

struct LayerNorm2 {
  int layer = 0;
  double squared_norm = 0;  // of the gradient summed over terms; not finite if any value is not
};

struct Vote {
  double count = 0;     // of the loss's terms, or the sum of their weights; 0 without the loss
  double loss_sum = 0;  // over those terms
  std::optional<double> correct;  // correct predictions among `count`, if counted
  std::vector<LayerNorm2> layers;
  std::vector<double> factors;             // of rank 0: kStepFactors values
  std::vector<std::uint64_t> copy_hashes;  // of each group of copies that includes this rank
  bool ends = false;                       // the session is to end after this step
  bool saves = false;                      // of rank 0: a checkpoint is due after it
  std::optional<PredictionCounts> predictions = {};  // of an evaluation, if counted
};

// What all ranks know about each other's votes.
struct VoteRules {
  int layer_count = 0;
  std::vector<CopyGroup> copies;     // groups of ranks that vote
  std::vector<bool> corrected = {};  // [layer]: has momentum-corrected gradients; empty = none has
  // [Rank]: its island (plan/rounds/rounds_plan.h), each of which votes for every layer; empty: all
  // are in one.
  std::vector<int> islands = {};

  [[nodiscard]] std::size_t island_count() const;
};

enum class VoteKind {
  kEvaluation,  // of the loss alone
  kStep         // with all layers, rank 0's factors and the hashes of all copies
};

// The votes of one island on a step.
struct IslandTally {
  double count = 0;
  double squared_norm = 0;
  double clipped_squared_norm = 0;  // of the layers without momentum-corrected gradients
};

struct Tally {
  double count = 0;  // 0: no rank had a target, for example because the loss ignores all of them
  double loss_sum = 0;
  std::optional<double> correct;                     // if every rank with terms counted them
  std::optional<PredictionCounts> predictions = {};  // as well
  std::vector<IslandTally> islands;                  // of a step
  bool finite = true;                                // false: every rank skips the step
  std::vector<double> factors;                       // of rank 0
  bool ends = false;                                 // some rank requested it
  bool saves = false;                                // rank 0 requested it
};

[[nodiscard]] std::size_t vote_bytes_max(const VoteRules& rules);
[[nodiscard]] std::vector<std::byte> encode_vote(const Vote& vote);

// Adds up the votes of all ranks, [Rank]. kCorrupt if one is malformed or has parts that are not
// its rank's, or if for a step a layer is missing or given twice. kInternal if copies differ.
// REQUIRES: a run has at least one rank.
[[nodiscard]] Result<Tally> tally_votes(const std::vector<std::vector<std::byte>>& votes,
                                        const VoteRules& rules,
                                        VoteKind kind);

}  // namespace motley
