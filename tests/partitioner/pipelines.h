// Enumerates every pipeline of single slots.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace motley {

// Calls visit(slots, first_layers) for every pipeline of distinct slots and every cut.
inline void for_each_pipeline(
    int slot_count,
    int layer_count,
    const std::function<void(const std::vector<int>&, const std::vector<int>&)>& visit) {
  std::vector<int> slots;
  std::vector<int> first_layers;
  const std::function<void(int)> add_stage = [&](int first) {
    for (int slot = 0; slot < slot_count; ++slot) {
      if (std::find(slots.begin(), slots.end(), slot) != slots.end()) continue;
      slots.push_back(slot);
      first_layers.push_back(first);
      visit(slots, first_layers);  // this stage holds all remaining layers
      for (int next = first + 1; next < layer_count; ++next) add_stage(next);
      slots.pop_back();
      first_layers.pop_back();
    }
  };
  add_stage(0);
}

}  // namespace motley
