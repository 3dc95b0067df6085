#include "pipeline/schedule/collective_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley {

CollectiveChecks::CollectiveChecks(const Schedule& schedule,
                                   const ActionRules& rules,
                                   bool training,
                                   bool tied_across_ranks)
    : training_(training),
      tied_(training && tied_across_ranks),
      reduced_chunks_(schedule.ranks.size()),
      tied_ranks_(schedule.end_ranks()),
      tied_at_(schedule.ranks.size()),
      vote_at_(schedule.ranks.size()),
      stepped_(schedule.ranks.size(), false) {
  for (const std::vector<Action>& actions : schedule.ranks) {
    last_changes_.push_back(rules.last_changes(actions));
  }
  for (ChunkId chunk{0}; chunk.value < schedule.chunk_count(); ++chunk.value) {
    replicas_.push_back(schedule.group_members(chunk));
    if (!training || replicas_.back().size() < 2) continue;
    reduced_at_[chunk].resize(schedule.ranks.size());
    for (const Rank rank : replicas_.back()) reduced_chunks_[rank.index()].push_back(chunk);
  }
}

CheckResult CollectiveChecks::arrive(Positions& positions,
                                     const std::vector<Rank>& members,
                                     Rank here,
                                     std::size_t at) {
  std::optional<std::size_t>& own = positions[here.index()];
  if (!own) own = at;
  if (*own != at) return breaks("all-reduced twice");
  for (const Rank rank : members) {
    if (!positions[rank.index()]) return must_wait_for(fmt::format("rank {}", rank.value));
  }
  return {};
}

CheckResult CollectiveChecks::reduce(Rank here, std::size_t at, ChunkId chunk) {
  if (!training_) return breaks("a forward schedule has no gradients");
  const std::vector<Rank>& members = replicas_[chunk.index()];
  if (!std::ranges::binary_search(members, here)) return breaks("the chunk is not on this rank");
  if (members.size() == 1) return breaks("the chunk is on one rank");
  const std::size_t last = last_changes_[here.index()].chunks[chunk.index()];
  if (last == LastChanges::kNever || at < last) {
    return breaks("its rank has not computed all of the chunk");
  }
  return arrive(reduced_at_.at(chunk), members, here, at);
}

CheckResult CollectiveChecks::reduce_tied(Rank here, std::size_t at) {
  if (!training_) return breaks("a forward schedule has no gradients");
  if (tied_ranks_.size() < 2) return breaks("tied parameters are on one rank");
  if (!tied_) return breaks("no tied parameter is on several ranks");
  if (!std::ranges::binary_search(tied_ranks_, here)) {
    return breaks("this rank has no tied parameter");
  }
  const std::size_t last = last_changes_[here.index()].tied;
  if (last == LastChanges::kNever || at < last) {
    return breaks("its rank has not computed all contributions to the tied gradient");
  }
  return arrive(tied_at_, tied_ranks_, here, at);
}

std::optional<std::string> CollectiveChecks::missing_allreduce(Rank here) const {
  for (const ChunkId chunk : reduced_chunks_[here.index()]) {
    if (!reduced_at_.at(chunk)[here.index()]) {
      return fmt::format("the all-reduce of chunk {} over its replicas", chunk.value);
    }
  }
  if (tied_ && std::ranges::binary_search(tied_ranks_, here) && !tied_at_[here.index()]) {
    return "the all-reduce of the tied gradients";
  }
  return std::nullopt;
}

CheckResult CollectiveChecks::vote(Rank here, std::size_t at) {
  if (const auto allreduce = missing_allreduce(here)) {
    return breaks(fmt::format("its rank has not computed everything: {} is missing", *allreduce));
  }
  vote_at_[here.index()] = at;
  while (voted_ < vote_at_.size() && vote_at_[voted_]) ++voted_;
  if (voted_ < vote_at_.size()) return must_wait_for(fmt::format("the vote of rank {}", voted_));
  return {};
}

CheckResult CollectiveChecks::step(Rank here) {
  if (!training_) return breaks("a forward schedule has no update");
  if (!vote_at_[here.index()]) return breaks("before the vote");
  stepped_[here.index()] = true;
  return {};
}

CheckResult CollectiveChecks::check_not_ended(Rank here, std::size_t at, ActionKind kind) const {
  if (stepped_[here.index()]) return breaks("nothing may follow the update");
  const std::optional<std::size_t>& vote = vote_at_[here.index()];
  if (vote && *vote != at && kind != ActionKind::kStep) {
    return breaks("only the update may follow the vote");
  }
  return {};
}

std::optional<std::string> CollectiveChecks::missing() const {
  for (std::size_t r = 0; r < vote_at_.size(); ++r) {
    if (!vote_at_[r]) return fmt::format("rank {} does not vote", r);
    if (training_ && !stepped_[r]) return fmt::format("rank {} does not update", r);
  }
  return std::nullopt;
}

}  // namespace motley
