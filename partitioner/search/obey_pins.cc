#include "partitioner/search/obey_pins.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "partitioner/cost/at.h"

namespace motley {
namespace {

bool has_slot(const StageChoice& stage, int slot) {
  return std::ranges::find(stage.slots, slot) != stage.slots.end();
}

class PinChanges {
 public:
  PinChanges(const Candidate& candidate, const SearchSpace& space, int layer_count)
      : candidate_(candidate), space_(space), layers_(layer_count) {}

  std::vector<Candidate> list() {
    for (std::size_t i = 0; i < candidate_.stages.size(); ++i) {
      if (const auto run = astray(i)) {
        for (int slot = 0; slot < static_cast<int>(space_.may_hold.size()); ++slot) {
          if (is_usable(slot) && may_hold(slot, run->first)) add(i, run->first, run->second, slot);
        }
        return std::move(found_);
      }
    }
    for (const std::vector<int>& wanted : space_.must_use) {
      if (uses_one_of(candidate_, wanted)) continue;
      for (std::size_t i = 0; i < candidate_.stages.size(); ++i) {
        for (int layer = candidate_.stages[i].first_layer; layer < end_of(i); ++layer) {
          for (const int slot : wanted) add(i, layer, layer + 1, slot);
        }
      }
      // Taking one required machine's last layer for another would never end.
      std::erase_if(found_, [&](const Candidate& changed) { return !keeps_obeying(changed); });
      return std::move(found_);
    }
    return {};
  }

 private:
  int end_of(std::size_t i) const {
    return i + 1 < candidate_.stages.size() ? candidate_.stages[i + 1].first_layer : layers_;
  }

  bool is_usable(int slot) const { return space_.usable.empty() || space_.usable[at(slot)]; }

  bool may_hold(int slot, int layer) const { return space_.may_hold[at(slot)][at(layer)]; }

  bool is_obeyed(const StageChoice& stage, int layer) const {
    return std::ranges::any_of(stage.slots, [&](int slot) { return may_hold(slot, layer); });
  }

  // Whether the change satisfies all pins that the candidate satisfies. REQUIRES: none of its
  // layers is pinned elsewhere.
  bool keeps_obeying(const Candidate& changed) const {
    const auto is_kept = [&](const std::vector<int>& wanted) {
      return !uses_one_of(candidate_, wanted) || uses_one_of(changed, wanted);
    };
    if (!std::ranges::all_of(space_.must_use, is_kept)) return false;
    if (space_.may_hold.empty()) return true;
    for (std::size_t i = 0; i < changed.stages.size(); ++i) {
      const bool is_last = i + 1 == changed.stages.size();
      const int end = is_last ? layers_ : changed.stages[i + 1].first_layer;
      for (int layer = changed.stages[i].first_layer; layer < end; ++layer) {
        if (!is_obeyed(changed.stages[i], layer)) return false;
      }
    }
    return true;
  }

  // The first consecutive layers of the stage that are pinned to another machine, to one of them.
  std::optional<std::pair<int, int>> astray(std::size_t i) const {
    if (space_.may_hold.empty()) return std::nullopt;
    const StageChoice& stage = candidate_.stages[i];
    for (int first = stage.first_layer; first < end_of(i); ++first) {
      if (is_obeyed(stage, first)) continue;
      const auto same = [&](int layer) {
        return std::ranges::all_of(space_.may_hold, [&](const std::vector<bool>& may) {
          return may[at(layer)] == may[at(first)];
        });
      };
      int last = first + 1;
      while (last < end_of(i) && same(last)) ++last;
      return std::pair(first, last);
    }
    return std::nullopt;
  }

  static bool uses_one_of(const Candidate& candidate, const std::vector<int>& wanted) {
    return std::ranges::any_of(candidate.stages, [&](const StageChoice& stage) {
      return std::ranges::any_of(wanted, [&](int slot) { return has_slot(stage, slot); });
    });
  }

  // Adds changes with layers [first, last) of stage i also, or only, on the slot.
  void add(std::size_t i, int first, int last, int slot) {
    for (int codec = 0; codec < static_cast<int>(space_.codecs.size()); ++codec) {
      Candidate changed = candidate_;
      const std::size_t own = isolate(changed, i, first, last, codec);
      StageChoice& stage = changed.stages[own];
      const int micro_batches = std::reduce(stage.batch_split.begin(), stage.batch_split.end());
      Candidate moved = changed;
      moved.stages[own].slots = {slot};
      moved.stages[own].batch_split = {micro_batches};
      found_.push_back(std::move(moved));
      const auto most = std::ranges::max_element(stage.batch_split);
      if (!space_.replicas || *most < 2 || has_slot(stage, slot)) continue;
      --*most;
      const auto place = std::ranges::lower_bound(stage.slots, slot);
      stage.batch_split.insert(stage.batch_split.begin() + (place - stage.slots.begin()), 1);
      stage.slots.insert(place, slot);
      found_.push_back(std::move(changed));
    }
  }

  // Makes the layers a stage of their own; returns its index.
  std::size_t isolate(Candidate& changed, std::size_t i, int first, int last, int codec) const {
    const auto position = [&](std::size_t k) {
      return changed.stages.begin() + static_cast<std::ptrdiff_t>(k);
    };
    if (last < end_of(i)) {
      StageChoice rest = changed.stages[i];
      rest.first_layer = last;
      changed.stages.insert(position(i + 1), std::move(rest));
      changed.stages[i].codec = codec;
    }
    if (first > changed.stages[i].first_layer) {
      StageChoice own = changed.stages[i];
      own.first_layer = first;
      changed.stages[i].codec = codec;
      ++i;
      changed.stages.insert(position(i), std::move(own));
    }
    return i;
  }

  const Candidate& candidate_;
  const SearchSpace& space_;
  int layers_;
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<Candidate> changes_to_obey(const Candidate& candidate,
                                       const SearchSpace& space,
                                       int layer_count) {
  return PinChanges(candidate, space, layer_count).list();
}

}  // namespace motley
