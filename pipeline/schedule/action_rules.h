// The rules of a step: what each action needs, what it makes and for whom, how that comes from one
// rank to another, and which gradients it changes. It is decided here alone: the generators put
// their transfers by it, the validator refuses what breaks it, the executor hands over, sends and
// sums by it, and the simulator and the report count messages by it (docs/formats/schedule.md).
//
// Whatever one action makes and another needs is a value. It is made by one action and used by one
// action; the owners of its micro-batch say on which ranks. Where these differ the value crosses:
// its maker keeps it until one action has sent it, at any later place, and another action has
// posted its receive before the user needs it. Where they are the same rank the maker hands it
// over.
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

// Who computes each micro-batch of each chunk, [ChunkId][MicroId].
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

// No action needs or makes more than two.
class Values {
 public:
  void add(const Value& value) { values_[count_++] = value; }

  [[nodiscard]] const Value* begin() const { return values_.data(); }

  [[nodiscard]] const Value* end() const { return values_.data() + count_; }

 private:
  std::array<Value, 2> values_;
  std::size_t count_ = 0;
};

// Where in a rank's list its gradients are changed for the last time.
struct LastChanges {
  static constexpr std::size_t kNever = SIZE_MAX;

  std::vector<std::size_t> chunks;  // [ChunkId] the gradient of the chunk's parameters
  std::size_t tied = kNever;        // the gradient of the tied parameter, of all uses on the rank
};

class ActionRules {
 public:
  // owners: [ChunkId][MicroId], lent. REQUIRES: at least one chunk, and as many owners of each.
  explicit ActionRules(const std::vector<std::vector<Rank>>& owners) : owners_(owners) {}

  explicit ActionRules(std::vector<std::vector<Rank>>&& owners) = delete;

  // The rank that runs the action; nothing for R, T, V and S, which several do.
  [[nodiscard]] std::optional<Rank> rank_of(const Action& action) const;

  // What the action cannot run without, in the order in which it is received.
  [[nodiscard]] Values needs(const Action& action) const;
  // What is there when the action has run.
  [[nodiscard]] Values makes(const Action& action) const;

  // What ST, SA or SG sends, and what RT, RA or RG posts the receive of. Nothing for other actions,
  // nor where the chunk has no neighbour on that side.
  [[nodiscard]] std::optional<Value> sent_by(const Action& action) const;
  [[nodiscard]] std::optional<Value> posted_by(const Action& action) const;

  // The chunk whose action makes it.
  [[nodiscard]] ChunkId maker_chunk(const Value& value) const;

  [[nodiscard]] Rank maker(const Value& value) const {
    return owner(maker_chunk(value), value.micro);
  }

  [[nodiscard]] Rank user(const Value& value) const { return owner(value.chunk, value.micro); }

  // Whether it goes from one rank to another.
  [[nodiscard]] bool crosses(const Value& value) const { return maker(value) != user(value); }

  // Of an activation or a gradient: the chunk behind which lies the boundary that it crosses.
  [[nodiscard]] ChunkId boundary(const Value& value) const {
    return std::min(value.chunk, maker_chunk(value));
  }

  // Which actions send it and post its receive. REQUIRES: activation, gradient or targets.
  [[nodiscard]] Action send_of(const Value& value) const;
  [[nodiscard]] static Action post_of(const Value& value);

  // Whether the action adds to the gradients of its chunk's parameters.
  [[nodiscard]] static bool adds_to_parameters(const Action& action);
  // Whether it adds to the gradient of a tied parameter, if there is one: chunk 0 does so with its
  // input part, the last chunk with its weight part.
  [[nodiscard]] bool adds_to_tied(const Action& action) const;
  // After these places of the rank's list R and T may stand, and their sums may begin.
  [[nodiscard]] LastChanges last_changes(std::span<const Action> actions) const;

  [[nodiscard]] std::size_t chunk_count() const { return owners_.size(); }

  [[nodiscard]] std::size_t micro_batches() const { return owners_.front().size(); }

  [[nodiscard]] ChunkId last_chunk() const {
    return {static_cast<std::int32_t>(owners_.size()) - 1};
  }

  // A number of its own for each value, below value_count().
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
