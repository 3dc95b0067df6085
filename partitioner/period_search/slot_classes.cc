#include "partitioner/period_search/slot_classes.h"

#include <algorithm>
#include <cstddef>

namespace motley {
namespace {

bool same_links(const CostModel& cost, int a, int b) {
  if (cost.link(a, b) != cost.link(b, a)) return false;
  if (cost.networks()[cost.machine_of(a)].medium != cost.networks()[cost.machine_of(b)].medium) {
    return false;
  }
  for (int c = 0; c < static_cast<int>(cost.slots().size()); ++c) {
    if (c == a || c == b) continue;
    if (cost.link(a, c) != cost.link(b, c) || cost.link(c, a) != cost.link(c, b)) return false;
    // A neighbour inside one machine is nearer than any link's speed expresses.
    const auto machine = [&](int slot) -> const std::string& {
      return cost.slots()[static_cast<std::size_t>(slot)].machine;
    };
    if ((machine(a) == machine(c)) != (machine(b) == machine(c))) return false;
  }
  return true;
}

bool same_pins(const SearchSpace& space, int a, int b) {
  const auto i = static_cast<std::size_t>(a);
  const auto j = static_cast<std::size_t>(b);
  if (!space.may_hold.empty() && space.may_hold[i] != space.may_hold[j]) return false;
  return std::all_of(space.must_use.begin(), space.must_use.end(), [&](const auto& wanted) {
    const auto wants = [&](int slot) {
      return std::find(wanted.begin(), wanted.end(), slot) != wanted.end();
    };
    return wants(a) == wants(b);
  });
}

}  // namespace

std::vector<std::vector<int>> slot_classes(const CostModel& cost, const SearchSpace& space) {
  std::vector<std::vector<int>> classes;
  for (int slot = 0; slot < static_cast<int>(cost.slots().size()); ++slot) {
    if (!space.usable.empty() && !space.usable[static_cast<std::size_t>(slot)]) continue;
    const auto like = std::find_if(classes.begin(), classes.end(), [&](const auto& members) {
      return std::all_of(members.begin(), members.end(), [&](int member) {
        return cost.same_costs(member, slot) && same_links(cost, member, slot) &&
               same_pins(space, member, slot);
      });
    });
    if (like == classes.end()) {
      classes.push_back({slot});
    } else {
      like->push_back(slot);
    }
  }
  return classes;
}

}  // namespace motley
