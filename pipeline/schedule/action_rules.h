// The rules of a step: the inputs and outputs of each action, how values are transferred between
// ranks, and which gradients an action changes. They are defined here alone. The generators place
// transfers by them, the validator rejects violations, the executor passes, sends and all-reduces
// by them, and the simulator and the report count messages by them (docs/formats/schedule.md).
//
// A value is an output of one action and an input of another. One action makes it and one action
// uses it, on the ranks that own its micro-batch. If these differ, the value crosses: its maker
// stores it until an action at any later place has sent it, and another action has posted its
// receive before the user needs it. If they are the same rank, the maker passes it directly.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

// The rank that computes each micro-batch of each chunk, [ChunkId][MicroId].
[[nodiscard]] std::vector<std::vector<Rank>> owners_of(const Plan& plan);

enum class ValueKind : std::uint8_t {
  kActivation,  // made by F of the chunk before, for F
  kGradient,    // made by B or BI of the chunk after, for B or BI
  kTargets,     // made by L, for F of the last chunk
  kSamples,     // made by L, for F of chunk 0
  kKept,        // made by F, for B or BI of the same chunk
  kWeightPart,  // made by BI, for BW of the same chunk
};

inline constexpr std::size_t kValueKinds = 6;

struct Value {
  ValueKind kind = ValueKind::kActivation;
  ChunkId chunk;  // of the action that uses it
  MicroId micro;

  friend auto operator<=>(const Value&, const Value&) = default;
};

// At most two inputs or outputs of an action.
class Values {
 public:
  void add(const Value& value) { values_[count_++] = value; }

  [[nodiscard]] const Value* begin() const { return values_.data(); }

  [[nodiscard]] const Value* end() const { return values_.data() + count_; }

 private:
  std::array<Value, 2> values_;
  std::size_t count_ = 0;
};

// The positions in a rank's list at which its gradients change for the last time.
struct LastChanges {
  static constexpr std::size_t kNever = SIZE_MAX;

  std::vector<std::size_t> chunks;  // [ChunkId] the gradient of the chunk's parameters
  std::size_t tied = kNever;        // the gradient of the tied parameter, of all uses on the rank
};

class ActionRules {
 public:
  // owners: [ChunkId][MicroId], borrowed. REQUIRES: at least one chunk, and equally many owners of
  // each.
  explicit ActionRules(const std::vector<std::vector<Rank>>& owners) : owners_(owners) {}

  explicit ActionRules(std::vector<std::vector<Rank>>&& owners) = delete;

  // The rank that runs the action; nullopt for R, T, V, S, O and A, which several ranks run.
  [[nodiscard]] std::optional<Rank> rank_of(const Action& action) const;

  // The action's inputs, in the order in which they are received.
  [[nodiscard]] Values needs(const Action& action) const;
  // The action's outputs.
  [[nodiscard]] Values makes(const Action& action) const;

  // The value that ST, SA or SG sends, and the value whose receive RT, RA or RG posts. nullopt for
  // other actions, and if the chunk has no neighbour on that side.
  [[nodiscard]] std::optional<Value> sent_by(const Action& action) const;
  [[nodiscard]] std::optional<Value> posted_by(const Action& action) const;

  // The chunk of the action that makes it.
  [[nodiscard]] ChunkId maker_chunk(const Value& value) const;

  [[nodiscard]] Rank maker(const Value& value) const {
    return owner(maker_chunk(value), value.micro);
  }

  [[nodiscard]] Rank user(const Value& value) const { return owner(value.chunk, value.micro); }

  // Whether it passes between ranks.
  [[nodiscard]] bool crosses(const Value& value) const { return maker(value) != user(value); }

  // The chunk before the boundary that an activation or gradient crosses.
  [[nodiscard]] ChunkId boundary(const Value& value) const {
    return std::min(value.chunk, maker_chunk(value));
  }

  // The actions that send it and that post its receive. REQUIRES: activation, gradient or targets.
  [[nodiscard]] Action send_of(const Value& value) const;
  [[nodiscard]] static Action post_of(const Value& value);

  // Whether the action adds to the gradients of its chunk's parameters.
  [[nodiscard]] static bool adds_to_parameters(const Action& action);
  // Whether it adds to the gradient of a tied parameter, if there is one: chunk 0 does so with its
  // input part, the last chunk with its weight part.
  [[nodiscard]] bool adds_to_tied(const Action& action) const;
  // R and T may stand behind these positions of the rank's list, and their all-reduces may begin.
  [[nodiscard]] LastChanges last_changes(std::span<const Action> actions) const;

  [[nodiscard]] std::size_t chunk_count() const { return owners_.size(); }

  [[nodiscard]] std::size_t micro_batches() const { return owners_.front().size(); }

  [[nodiscard]] ChunkId last_chunk() const {
    return {static_cast<std::int32_t>(owners_.size()) - 1};
  }

  // A unique number of each value, below value_count().
  [[nodiscard]] std::size_t index_of(const Value& value) const {
    return (static_cast<std::size_t>(value.kind) * chunk_count() + value.chunk.index()) *
               micro_batches() +
           value.micro.index();
  }

  [[nodiscard]] std::size_t value_count() const {
    return kValueKinds * chunk_count() * micro_batches();
  }

 private:
  [[nodiscard]] Rank owner(ChunkId chunk, MicroId micro) const {
    return owners_[chunk.index()][micro.index()];
  }

  const std::vector<std::vector<Rank>>& owners_;
};

}  // namespace motley
