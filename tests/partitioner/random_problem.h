// Random planning problems that are small enough to enumerate.
#pragma once

#include <vector>

#include "tests/partitioner/planning_fixtures.h"
#include "tests/support/property.h"

namespace motley {

struct ProblemSize {
  std::size_t layers_max = 6;
  std::size_t machines_max = 3;
};

namespace random_problem_parts {

inline LayerSketch layer() {
  return {.work_s = 0.001 * *rc::gen::inRange(1, 100),
          .parameters = *rc::gen::inRange(0, 100),
          .output_floats = *rc::gen::inRange(1, 50),
          .saved_bytes = *rc::gen::inRange(0, 2000),
          .exact_bytes = *rc::gen::element(0, 0, 0, 13, 150)};
}

inline MachineSketch machine(std::size_t layers) {
  MachineSketch machine{
      .speed = 0.25 * *rc::gen::inRange(1, 9),
      .memory_bytes = *rc::gen::element(0, 1, 1) == 0 ? *rc::gen::inRange(500, 20000) : 1'000'000};
  if (*rc::gen::inRange(0, 3) == 0) {
    for (std::size_t l = 0; l < layers; ++l) {
      machine.layer_speeds.push_back(0.5 * *rc::gen::inRange(1, 5));
    }
  }
  machine.medium = *rc::gen::element("", "", "", "wifi", "radio");
  machine.message_s = *rc::gen::element(0.0, 0.0, 0.001);
  machine.half_s_per_float = *rc::gen::element(0.0, 1e-5, 1e-3);
  return machine;
}

inline LinkSpeed link() {
  return {*rc::gen::element(1e3, 1e4, 1e6, 1e6, 1e6), 0.0001 * *rc::gen::element(0, 1, 5, 50)};
}

inline Pins pins(std::size_t layers, std::size_t machines) {
  Pins pins;
  const auto machine = [&] {
    return "m" + std::to_string(*rc::gen::inRange<std::size_t>(0, machines));
  };
  if (*rc::gen::inRange(0, 4) == 0) {
    pins.layers.push_back({std::to_string(*rc::gen::inRange<std::size_t>(0, layers)), machine()});
  }
  if (*rc::gen::inRange(0, 6) == 0) pins.never.push_back(machine());
  if (*rc::gen::inRange(0, 6) == 0) pins.always.push_back(machine());
  if (*rc::gen::inRange(0, 4) == 0) pins.memory_share[machine()] = 0.6;
  return pins;
}

}  // namespace random_problem_parts

// Sometimes memory or links are tight, links unequal, layers pinned or tied, codecs to choose.
inline Problem random_problem(ProblemSize size = {}) {
  namespace parts = random_problem_parts;
  Problem problem;
  problem.layers.resize(*rc::gen::inRange<std::size_t>(1, size.layers_max + 1));
  for (LayerSketch& layer : problem.layers) layer = parts::layer();
  problem.machines.resize(*rc::gen::inRange<std::size_t>(1, size.machines_max + 1));
  for (MachineSketch& machine : problem.machines) machine = parts::machine(problem.layers.size());
  problem.link = parts::link();
  for (std::size_t a = 0; a < problem.machines.size(); ++a) {
    for (std::size_t b = 0; b < problem.machines.size(); ++b) {
      if (a == b || *rc::gen::inRange(0, 3) != 0) continue;
      problem.links.push_back({fmt::format("m{}", a), fmt::format("m{}", b), parts::link()});
    }
  }
  problem.tied = *rc::gen::inRange(0, 3) == 0;
  problem.options.global_batch = *rc::gen::element(1, 4, 6);
  problem.options.replicas = *rc::gen::inRange(0, 3) != 0;
  problem.options.recompute = *rc::gen::element<std::string>("auto", "auto", "none", "all");
  if (*rc::gen::inRange(0, 3) == 0) problem.options.codecs = {"none", kHalf};
  return problem;
}

// The same with pins that do not contradict each other.
inline Problem random_pinned_problem(ProblemSize size = {}) {
  Problem problem = random_problem(size);
  const Pins pins = random_problem_parts::pins(problem.layers.size(), problem.machines.size());
  std::vector<std::string> names;
  for (std::size_t l = 0; l < problem.layers.size(); ++l) names.push_back(fmt::format("l{}", l));
  if (check_pins(pins, names, problem.cluster()).ok()) problem.options.pins = pins;
  return problem;
}

}  // namespace motley
