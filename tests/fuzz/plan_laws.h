// The properties of the values in plan/: cluster, links, profile, plan and pins. Valid ones are in
// tests/plan/value_fixtures.h.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"
#include "plan/links.h"
#include "plan/pins.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline std::string wrong_with_cluster(std::string_view text) {
  const auto cluster = parse_cluster(text, "c.toml");
  if (!cluster.ok()) return wrong_error(cluster.error(), {ErrorCode::kConfig}, "c.toml");
  const auto again = parse_cluster(text, "c.toml");
  return again.ok() && *again == *cluster ? "" : "read twice, and not the same";
}

inline std::string wrong_with_plan(std::string_view text) {
  return wrong_with_json(text, parse_plan, plan_to_json);
}

inline std::string wrong_with_profile(std::string_view text) {
  return wrong_with_json(text, parse_profile, profile_to_json);
}

inline std::string wrong_with_links(std::string_view text) {
  return wrong_with_json(text, parse_links, links_to_json);
}

inline std::string right_pins() {
  return "layers 0-4 on box\nlayer h.5.attn on a.b\nnever c\nalways box\nbox at most 60% memory\n";
}

// Pins are sentences, here one per line. Each layer that they place can be written as a separate
// pin with the same effect.
inline std::string wrong_with_pins(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::vector<std::string> sentences;
  for (std::string line; std::getline(lines, line);) sentences.push_back(line);
  const auto pins = parse_pins(sentences);
  if (!pins.ok()) return wrong_error(pins.error(), {ErrorCode::kConfig}, "pin");
  std::vector<std::string> layers;
  for (const Pins::LayerPin& pin : pins->layers) {
    layers.push_back("layer " + pin.layer + " on " + pin.machine);
    if (layers.size() == 1000) break;  // a range may contain very many
  }
  const auto again = parse_pins(layers);
  if (!again.ok()) return "written and refused: " + describe(again.error());
  const bool same = std::equal(again->layers.begin(), again->layers.end(), pins->layers.begin()) &&
                    again->layers.size() == layers.size();
  return same ? "" : "written and read, and not the same";
}

}  // namespace motley
