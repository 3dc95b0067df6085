// Pins: what a person decided about the plan beforehand, as a value. The planner obeys them.
// Grammar and examples: docs/formats/pins.md.
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

// One sentence a text, such as "layers 0-4 on box". kConfig for any other, quoting it.
[[nodiscard]] Result<Pins> parse_pins(const std::vector<std::string>& texts);

// The pins as sentences, layers with following numbers as ranges: what parse_pins would take.
[[nodiscard]] std::vector<std::string> pin_texts(const Pins& pins);

// The sentences that name none of these machines. REQUIRES: parse_pins takes them.
[[nodiscard]] std::vector<std::string> pins_without(const std::vector<std::string>& texts,
                                                    const std::vector<std::string>& machines);

// The index of the layer that a pin means: of that name, else of that index. nullopt when there is
// none.
[[nodiscard]] std::optional<int> pinned_layer(const std::string& layer,
                                              const std::vector<std::string>& layer_names);

// kConfig, with what was probably meant, when a pin names a machine or layer that does not exist,
// or when pins contradict each other. `layer_names` is [layer] of the model.
[[nodiscard]] Result<void> check_pins(const Pins& pins,
                                      const std::vector<std::string>& layer_names,
                                      const Cluster& cluster);

}  // namespace motley
