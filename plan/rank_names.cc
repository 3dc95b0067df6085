#include "plan/rank_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "plan/cluster.h"

namespace motley {
namespace {

// a … z, aa, ab, …
std::string replica_letters(std::ptrdiff_t number) {
  std::string letters(1, static_cast<char>('a' + number % 26));
  return number < 26 ? letters : replica_letters(number / 26 - 1) + letters;
}

}  // namespace

std::string rank_name(const Plan& plan, Rank rank) {
  std::vector<std::string> stages;
  for (std::size_t chunk = 0; chunk < plan.chunks.size(); ++chunk) {
    const std::vector<Replica>& replicas = plan.chunks[chunk].replicas;
    const auto replica = std::ranges::find(replicas, rank, &Replica::rank);
    if (replica == replicas.end()) continue;
    const bool is_alone = replicas.size() == 1;
    stages.push_back(
        fmt::format("{}{}", chunk, is_alone ? "" : replica_letters(replica - replicas.begin())));
  }
  const RankPlan& place = plan.ranks[rank.index()];
  const std::string_view label = label_of(place.device);
  return fmt::format("{} {} ({}{}{})", stages.size() == 1 ? "stage" : "stages",
                     fmt::join(stages, " and "), place.machine, label.empty() ? "" : ", ", label);
}

std::vector<std::string> rank_names(const Plan& plan) {
  std::vector<std::string> names;
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    names.push_back(rank_name(plan, rank));
  }
  return names;
}

}  // namespace motley
