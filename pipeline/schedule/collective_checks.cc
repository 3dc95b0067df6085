#include "pipeline/schedule/collective_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley {

CollectiveChecks::CollectiveChecks(const Schedule& schedule,
                                   const ActionRules& rules,
                                   bool training,
                                   bool tied_across_ranks)
    : training_(training),
      has_islands_(!schedule.islands.empty()),
      end_ranks_(schedule.end_ranks().size()),
      reduced_chunks_(schedule.ranks.size()),
      tied_at_(schedule.ranks.size()),
      vote_at_(schedule.ranks.size()),
      adopted_at_(schedule.ranks.size()),
      ends_(schedule.ranks.size(), End::kNone) {
  if (training && tied_across_ranks) tied_groups_ = schedule.tied_groups();
  for (const std::vector<Action>& actions : schedule.ranks) {
    last_changes_.push_back(rules.last_changes(actions));
  }
  for (ChunkId chunk{0}; chunk.value < schedule.chunk_count(); ++chunk.value) {
    replicas_.push_back(schedule.reduce_groups(chunk));
    if (!training || replicas_.back().empty()) continue;
    reduced_at_[chunk].resize(schedule.ranks.size());
    for (const std::vector<Rank>& group : replicas_.back()) {
      for (const Rank rank : group) reduced_chunks_[rank.index()].push_back(chunk);
    }
  }
}

const std::vector<Rank>* CollectiveChecks::group_of(const std::vector<std::vector<Rank>>& groups,
                                                    Rank rank) {
  const auto found = std::ranges::find_if(groups, [&](const std::vector<Rank>& group) {
    return std::ranges::binary_search(group, rank);
  });
  return found == groups.end() ? nullptr : &*found;
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
  const std::vector<Rank>* const members = group_of(replicas_[chunk.index()], here);
  if (members == nullptr) return breaks("the chunk is on one rank, or not on this one");
  const std::size_t last = last_changes_[here.index()].chunks[chunk.index()];
  if (last == LastChanges::kNever || at < last) {
    return breaks("its rank has not computed all of the chunk");
  }
  return arrive(reduced_at_.at(chunk), *members, here, at);
}

CheckResult CollectiveChecks::reduce_tied(Rank here, std::size_t at) {
  if (!training_) return breaks("a forward schedule has no gradients");
  if (end_ranks_ < 2) return breaks("tied parameters are on one rank");
  if (tied_groups_.empty()) return breaks("no tied parameter is on several ranks");
  const std::vector<Rank>* const members = group_of(tied_groups_, here);
  if (members == nullptr) return breaks("this rank has no tied parameter");
  const std::size_t last = last_changes_[here.index()].tied;
  if (last == LastChanges::kNever || at < last) {
    return breaks("its rank has not computed all contributions to the tied gradient");
  }
  return arrive(tied_at_, *members, here, at);
}

std::optional<std::string> CollectiveChecks::missing_allreduce(Rank here) const {
  for (const ChunkId chunk : reduced_chunks_[here.index()]) {
    if (!reduced_at_.at(chunk)[here.index()]) {
      return fmt::format("the all-reduce of chunk {} over its replicas", chunk.value);
    }
  }
  if (group_of(tied_groups_, here) != nullptr && !tied_at_[here.index()]) {
    return "the all-reduce of the tied gradients";
  }
  return std::nullopt;
}

CheckResult CollectiveChecks::vote(Rank here, std::size_t at) {
  if (const auto allreduce = missing_allreduce(here)) {
    return breaks(fmt::format("its rank has not computed everything: {} is missing", *allreduce));
  }
  vote_at_[here.index()] = at;
  ends_[here.index()] = End::kVoted;
  while (voted_ < vote_at_.size() && vote_at_[voted_]) ++voted_;
  if (voted_ < vote_at_.size()) return must_wait_for(fmt::format("the vote of rank {}", voted_));
  return {};
}

CheckResult CollectiveChecks::step(Rank here) {
  if (!training_) return breaks("a forward schedule has no update");
  if (ends_[here.index()] != End::kVoted) return breaks("before the vote");
  ends_[here.index()] = End::kStepped;
  return {};
}

CheckResult CollectiveChecks::offer(Rank here) {
  if (!has_islands_) return breaks("there are no islands");
  if (ends_[here.index()] != End::kStepped) return breaks("not directly after the update");
  ends_[here.index()] = End::kOffered;
  return {};
}

CheckResult CollectiveChecks::adopt(Rank here, std::size_t at) {
  if (!has_islands_) return breaks("there are no islands");
  End& end = ends_[here.index()];
  if (end < End::kStepped) return breaks("not directly after the update");
  std::optional<std::size_t>& own = adopted_at_[here.index()];
  if (!own) own = at;
  if (*own != at) return breaks("adopted twice");
  if (end == End::kStepped) end = End::kAdoptedEarlier;
  if (end == End::kOffered) end = End::kAdopted;
  if (end == End::kAdoptedEarlier) return {};
  for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
    if (ends_[rank] != End::kOffered && ends_[rank] != End::kAdopted) {
      return must_wait_for(fmt::format("the offer of rank {}", rank));
    }
  }
  return {};
}

CheckResult CollectiveChecks::check_not_ended(Rank here, std::size_t at, ActionKind kind) const {
  if (kind == ActionKind::kOffer || kind == ActionKind::kAdopt) return {};
  if (ends_[here.index()] >= End::kStepped) return breaks("nothing may follow the update");
  const std::optional<std::size_t>& vote = vote_at_[here.index()];
  if (vote && *vote != at && kind != ActionKind::kStep) {
    return breaks("only the update may follow the vote");
  }
  return {};
}

std::optional<std::string> CollectiveChecks::missing() const {
  const End least = training_ ? End::kStepped : End::kVoted;
  const End last = std::max(least, std::ranges::max(ends_));
  for (std::size_t r = 0; r < ends_.size(); ++r) {
    if (ends_[r] == End::kNone) return fmt::format("rank {} does not vote", r);
    if (ends_[r] == End::kVoted && last > End::kVoted) {
      return fmt::format("rank {} does not update", r);
    }
    if (ends_[r] != last) return fmt::format("rank {} does not end the step like others", r);
  }
  return std::nullopt;
}

}  // namespace motley
