// Pins: the user's constraints on the plan, as a value. The planner satisfies them. Grammar and
// examples: docs/formats/pins.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

struct Pins {
  struct LayerPin {
    std::string layer;  // a layer's name, or its index from 0 as text
    std::string machine;

    friend bool operator==(const LayerPin&, const LayerPin&) = default;
  };

  std::vector<LayerPin> layers;
  std::vector<std::string> never;              // machines that must not be used
  std::vector<std::string> always;             // machines that must hold a layer
  std::map<std::string, double> memory_share;  // machine -> share of its memory, above 0, at most 1

  friend bool operator==(const Pins&, const Pins&) = default;
};

// One sentence per text, such as "layers 0-4 on box". kConfig, with a quotation, for any other.
[[nodiscard]] Result<Pins> parse_pins(const std::vector<std::string>& texts);

// The pins as sentences that parse_pins accepts; consecutive layers become ranges.
[[nodiscard]] std::vector<std::string> pin_texts(const Pins& pins);

// The sentences without any of these machines. REQUIRES: parse_pins accepts them.
[[nodiscard]] std::vector<std::string> pins_without(const std::vector<std::string>& texts,
                                                    const std::vector<std::string>& machines);

// The index of a pin's layer: by name, else by index. nullopt if there is none.
[[nodiscard]] std::optional<int> pinned_layer(const std::string& layer,
                                              const std::vector<std::string>& layer_names);

// kConfig, with a suggestion, if a pin names a machine or layer that does not exist, or if pins
// contradict each other. `layer_names` is [layer] of the model.
[[nodiscard]] Result<void> check_pins(const Pins& pins,
                                      const std::vector<std::string>& layer_names,
                                      const Cluster& cluster);

}  // namespace motley
