// Random planning problems that are small enough to enumerate, and the enumeration.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/partitioner/planning_fixtures.h"
#include "tests/support/property.h"

namespace motley {

// Up to 6 layers and 3 machines; sometimes memory or links are tight.
inline Problem random_problem() {
  Problem problem;
  problem.layers.resize(*rc::gen::inRange<std::size_t>(1, 7));
  for (LayerSketch& layer : problem.layers) {
    layer = {.work_s = 0.001 * *rc::gen::inRange(1, 100),
             .parameters = *rc::gen::inRange(0, 100),
             .output_floats = *rc::gen::inRange(1, 50),
             .saved_bytes = *rc::gen::inRange(0, 2000)};
  }
  problem.machines.resize(*rc::gen::inRange<std::size_t>(1, 4));
  for (MachineSketch& machine : problem.machines) {
    machine = {.speed = 0.25 * *rc::gen::inRange(1, 9),
               .memory_bytes = *rc::gen::inRange(500, 20000)};
  }
  problem.link = {*rc::gen::element(1e3, 1e4, 1e6), 0.0001 * *rc::gen::inRange(0, 50)};
  problem.options.global_batch = *rc::gen::element(1, 4, 6);
  return problem;
}

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
      visit(slots, first_layers);  // this stage holds all layers that are left
      for (int next = first + 1; next < layer_count; ++next) add_stage(next);
      slots.pop_back();
      first_layers.pop_back();
    }
  };
  add_stage(0);
}

}  // namespace motley
