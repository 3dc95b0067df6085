// The vote before each step: what every rank must know to take the same decision.
//
// Each rank gives, for every layer it holds, the squared norm of the layer's gradient, and the rank
// with the loss also gives the sum of the loss, the number of its terms or the sum of their weights
// and, where the model counts it, how much of that was predicted right. All sum in the order of the
// layers, whoever holds them, so that the global norm has the same bits under every
// plan. Rank 0 also gives the factors that all take the step with, because pow and cos differ
// between C libraries in their last bits, and each rank gives hashes of the parameters of which
// others hold copies, which only stay equal as long as everybody computes the same. A rank that was
// asked to end the session says so, so that all end it after the same step; rank 0 says when a
// checkpoint is due by its clock, so that all save the same one.
// Layout of the bytes: docs/formats/frame.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "pipeline/schedule/copy_groups.h"

namespace motley {

struct LayerNorm2 {
  int layer = 0;
  double squared_norm = 0;  // of the gradient summed over terms; not finite when any value is not
};

struct Vote {
  double count = 0;     // of the loss's terms, or the sum of their weights; 0 without the loss
  double loss_sum = 0;  // over those terms
  std::optional<double> correct;  // of the count, where counted
  std::vector<LayerNorm2> layers;
  std::vector<double> factors;             // of rank 0: kStepFactors
  std::vector<std::uint64_t> copy_hashes;  // of each group of copies that the rank has one of
  bool ends = false;                       // the session is to end after this step
  bool saves = false;                      // of rank 0: a checkpoint is due after it
};

// What all ranks know of each other's votes.
struct VoteRules {
  int layer_count = 0;
  std::vector<CopyGroup> copies;  // of ranks that vote
  std::vector<bool> pushed = {};  // [layer]: has gradients that are pushes; empty = none has
};

enum class VoteKind {
  kEvaluation,  // of the loss alone
  kStep         // with all layers, rank 0's factors and the hashes of all copies
};

struct Tally {
  double count = 0;  // 0: no rank had a target, such as when the loss ignores all of them
  double loss_sum = 0;
  std::optional<double> correct;  // where every rank with terms counted
  double squared_norm = 0;
  double clipped_squared_norm = 0;  // of the layers whose gradients are no pushes
  bool finite = true;               // false: every rank skips the step
  std::vector<double> factors;      // of rank 0
  bool ends = false;                // some rank said so
  bool saves = false;               // rank 0 said so
};

[[nodiscard]] std::size_t vote_bytes_max(const VoteRules& rules);
[[nodiscard]] std::vector<std::byte> encode_vote(const Vote& vote);

// Sums the votes of all ranks, [Rank]. kCorrupt when one is malformed or holds what is not the
// rank's to say, or when for a step a layer is missing or given twice. kInternal when copies
// differ.
[[nodiscard]] Result<Tally> tally_votes(const std::vector<std::vector<std::byte>>& votes,
                                        const VoteRules& rules,
                                        VoteKind kind);

}  // namespace motley
