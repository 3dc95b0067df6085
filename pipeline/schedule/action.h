// Action: one operation of a rank in a step. A schedule is a list of actions for each rank. The
// same objects are generated, validated, simulated and executed, and have a text form that parses
// back (docs/formats/schedule.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace motley {

enum class ActionKind {
  kLoad,            // L   micro: take the micro-batch from the data source (its owner on chunk 0)
  kSendTargets,     // ST  micro: send its targets to its owner on the last chunk
  kRecvTargets,     // RT  micro: post the receive of the targets
  kRecvActivation,  // RA  chunk micro: post the receive of the chunk's input
  kForward,         // F   chunk micro: wait for the input, compute
  kSendActivation,  // SA  chunk micro: send the chunk's output to the next chunk
  kRecvGradient,    // RG  chunk micro: post the receive of the gradient of the chunk's output
  kBackward,        // B   chunk micro: wait for that gradient, compute both gradients
  kBackwardInput,   // BI  chunk micro: the same for the gradient of the input alone
  kBackwardWeight,  // BW  chunk micro: the rest of B: add the gradients of the parameters
  kSendGradient,    // SG  chunk micro: send the gradient of the chunk's input to the previous chunk
  kReduce,          // R   chunk: all-reduce the chunk's gradient over the ranks that hold it
  kReduceTied,      // T   all-reduce the gradient of the tied parameter over the ranks that use it
  kVote,            // V   exchange token count, squared norms and the finite flag
  kStep,            // S   update the parameters, or skip the update if the vote decides so
  kOffer,           // O   begin the all-reduces of the rank's pseudo-gradients over all islands
  kAdopt,           // A   wait for those of the last offer, take over the outer optimizer's anchor
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  ChunkId chunk;  // meaningful for RA F SA RG B BI BW SG R
  MicroId micro;  // meaningful for all but R T V S O A

  friend bool operator==(const Action&, const Action&) = default;
};

struct Schedule {
  std::string name;  // gpipe | 1f1b | split | forward
  int micro_batches = 0;
  std::vector<std::vector<Rank>> owners;   // [ChunkId][MicroId], the computing rank
  std::vector<std::vector<Action>> ranks;  // [Rank], in order of execution
  // Gradients are all-reduced within each island (plan/rounds/rounds_plan.h); empty: over all
  // ranks.
  std::vector<std::vector<Rank>> islands = {};

  [[nodiscard]] int chunk_count() const { return static_cast<int>(owners.size()); }

  [[nodiscard]] Rank owner(ChunkId chunk, MicroId micro) const {
    return owners[chunk.index()][micro.index()];
  }

  // The ranks that hold the chunk, ascending, each once.
  [[nodiscard]] std::vector<Rank> group_members(ChunkId chunk) const;

  // The groups that all-reduce the chunk's gradient: those ranks, by island; each has two or more.
  [[nodiscard]] std::vector<std::vector<Rank>> reduce_groups(ChunkId chunk) const;
  // The groups that all-reduce the gradient of the tied parameter, if there is one: end_ranks(), by
  // island; each has two or more.
  [[nodiscard]] std::vector<std::vector<Rank>> tied_groups() const;

  // The ranks that hold chunk 0 or the last chunk, and therefore a use of the tied parameter if
  // there is one; ascending, each once.
  [[nodiscard]] std::vector<Rank> end_ranks() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

[[nodiscard]] bool has_chunk(ActionKind kind);
[[nodiscard]] bool has_micro(ActionKind kind);

// "F1.3" (chunk 1, micro-batch 3), "L0", "V". Used in error messages.
[[nodiscard]] std::string to_text(const Action& action);
// The same in words: "forward of micro-batch 3".
[[nodiscard]] std::string to_words(const Action& action);

// The ranks in `owners`, ascending, each once.
[[nodiscard]] std::vector<Rank> distinct_ranks(const std::vector<Rank>& owners);

// One header line and one line a rank; parse_schedule(to_text(s)) == s.
[[nodiscard]] std::string to_text(const Schedule& schedule);
[[nodiscard]] Result<Schedule> parse_schedule(std::string_view text, const std::string& source);

}  // namespace motley
