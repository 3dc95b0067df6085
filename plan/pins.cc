#include "plan/pins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/check.h"
#include "base/json/json_fields.h"
#include "base/toml.h"
#include "plan/group_limits.h"

namespace motley {
namespace {

constexpr std::size_t kPinsMax = 10'000;
constexpr std::size_t kPinTextMax = 1000;
constexpr int kLayerIndexMax = 99'999;
constexpr std::size_t kPinnedLayersMax = 100'000;  // of all pins together
constexpr std::size_t kNamesShown = 8;

Error unusable(const std::string& text, const std::string& cause) {
  return {ErrorCode::kConfig, fmt::format("unusable pin '{}'", excerpt(text)), cause,
          "write 'layer h.5.attn on box', 'layers 0-4 on box', 'never box', 'always box' or "
          "'box at most 60% memory'"};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::optional<int> layer_index(std::string_view text) {
  int index = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool whole = code == std::errc{} && end == text.data() + text.size();
  if (!whole || text.front() == '-' || index > kLayerIndexMax) return std::nullopt;
  return index;
}

// Parses "60%" as 0.6.
std::optional<double> share(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  double percent = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = code == std::errc{} && end == text.data() + text.size();
  // Written so that NaN is rejected too.
  if (!whole || !(percent > 0 && percent <= 100)) return std::nullopt;
  return percent / 100;
}

// Adds sentences to the pins one by one.
class PinReader {
 public:
  Result<void> read(const std::string& text) {
    if (text.size() > kPinTextMax) return unusable(text, "it is too long");
    const std::vector<std::string> words = words_of(text);
    const auto is = [&](std::size_t size, std::size_t at, const char* word) {
      return words.size() == size && words[at] == word;
    };
    if (is(4, 0, "layer") && words[2] == "on") {
      pins_.layers.push_back({words[1], words[3]});
      return check_machine(text, words[3]);
    }
    if (is(4, 0, "layers") && words[2] == "on") return read_range(text, words[1], words[3]);
    if (is(2, 0, "never")) return add_machine(text, pins_.never, words[1]);
    if (is(2, 0, "always")) return add_machine(text, pins_.always, words[1]);
    if (is(5, 4, "memory") && words[1] == "at" && words[2] == "most") {
      return read_share(text, words[0], words[3]);
    }
    return unusable(text, "it is not one of the forms of a pin");
  }

  Pins pins() && { return std::move(pins_); }

 private:
  static Result<void> check_machine(const std::string& text, const std::string& machine) {
    if (is_word(machine, kMachineNameOthers)) return {};
    return unusable(text, "a machine's name has only letters, digits, '.', '_' and '-'");
  }

  static Result<void> add_machine(const std::string& text,
                                  std::vector<std::string>& list,
                                  const std::string& machine) {
    if (std::find(list.begin(), list.end(), machine) == list.end()) list.push_back(machine);
    return check_machine(text, machine);
  }

  Result<void> read_range(const std::string& text,
                          const std::string& range,
                          const std::string& machine) {
    const std::size_t dash = range.find('-');
    if (dash == std::string::npos) return unusable(text, "a range of layers is FIRST-LAST");
    const auto first = layer_index(std::string_view(range).substr(0, dash));
    const auto last = layer_index(std::string_view(range).substr(dash + 1));
    if (!first || !last || *first > *last) {
      return unusable(text, fmt::format("a range of layers is FIRST-LAST, counted from 0 to {}",
                                        kLayerIndexMax));
    }
    // Many short texts can each name very many layers.
    if (pins_.layers.size() + static_cast<std::size_t>(*last - *first) >= kPinnedLayersMax) {
      return unusable(text, fmt::format("the pins place more than {} layers", kPinnedLayersMax));
    }
    for (int layer = *first; layer <= *last; ++layer) {
      pins_.layers.push_back({std::to_string(layer), machine});
    }
    return check_machine(text, machine);
  }

  Result<void> read_share(const std::string& text,
                          const std::string& machine,
                          const std::string& percent) {
    const auto value = share(percent);
    if (!value) return unusable(text, "a share is above 0% and at most 100%");
    if (!pins_.memory_share.emplace(machine, *value).second) {
      return unusable(text, fmt::format("another pin limits the memory of '{}'", machine));
    }
    return check_machine(text, machine);
  }

  Pins pins_;
};

std::string first_of(std::vector<std::string> names) {
  const bool more = names.size() > kNamesShown;
  names.resize(std::min(names.size(), kNamesShown));
  return fmt::format("{}{}", fmt::join(names, ", "), more ? ", …" : "");
}

// Makes "h.*.attn" of "h.11.attn".
std::string without_numbers(const std::string& name) {
  std::string kind;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) kind += c;
    if (is_digit && !kind.ends_with('*')) kind += '*';
  }
  return kind;
}

Error unknown(const std::string& what,
              const std::string& name,
              const std::vector<std::string>& known,
              const std::string& cause) {
  const std::string close = closest_word(name, known);
  return {ErrorCode::kConfig, fmt::format("a pin has the unknown {} '{}'", what, name), cause,
          close.empty() ? fmt::format("use one of: {}", first_of(known))
                        : fmt::format("did you mean '{}'?", close)};
}

Error unknown_layer(const std::string& name, const std::vector<std::string>& layer_names) {
  const std::string cause =
      fmt::format("the model has {} layers, counted from 0", layer_names.size());
  std::vector<std::string> alike;  // names that differ only in a number
  for (const std::string& layer : layer_names) {
    if (without_numbers(layer) == without_numbers(name)) alike.push_back(layer);
  }
  if (alike.size() < 2 || layer_index(name)) return unknown("layer", name, layer_names, cause);
  return {ErrorCode::kConfig, fmt::format("a pin has the unknown layer '{}'", name), cause,
          fmt::format("layers of this kind are {} to {}", alike.front(), alike.back())};
}

Error contradiction(const std::string& what, const std::string& cause) {
  return {ErrorCode::kConfig, what, cause, "remove one of these pins"};
}

Result<void> check_machines(const Pins& pins, const Cluster& cluster) {
  std::vector<std::string> known;
  for (const Machine& machine : cluster.machines) known.push_back(machine.name);
  std::vector<std::string> named = pins.never;
  named.insert(named.end(), pins.always.begin(), pins.always.end());
  for (const auto& pin : pins.layers) named.push_back(pin.machine);
  for (const auto& [machine, part] : pins.memory_share) named.push_back(machine);
  for (const std::string& machine : named) {
    if (cluster.find(machine) != nullptr) continue;
    return unknown("machine", machine, known, "the cluster has no machine of this name");
  }
  if (pins.never.size() == known.size()) {
    return contradiction("the pins exclude every machine", "no device is left");
  }
  return {};
}

}  // namespace

Result<Pins> parse_pins(const std::vector<std::string>& texts) {
  if (texts.size() > kPinsMax) {
    return Error{ErrorCode::kConfig, fmt::format("{} pins", texts.size()),
                 fmt::format("the limit is {}", kPinsMax), "join layers into ranges"};
  }
  PinReader reader;
  for (const std::string& text : texts) MOTLEY_TRY(reader.read(text));
  return std::move(reader).pins();
}

std::vector<std::string> pin_texts(const Pins& pins) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < pins.layers.size(); ++i) {
    const auto& [layer, machine] = pins.layers[i];
    const auto first = layer_index(layer);
    int last = first.value_or(0);
    while (first && i + 1 < pins.layers.size() && pins.layers[i + 1].machine == machine &&
           pins.layers[i + 1].layer == std::to_string(last + 1)) {
      ++last;
      ++i;
    }
    texts.push_back(first && last > *first
                        ? fmt::format("layers {}-{} on {}", *first, last, machine)
                        : fmt::format("layer {} on {}", layer, machine));
  }
  for (const std::string& machine : pins.never) texts.push_back("never " + machine);
  for (const std::string& machine : pins.always) texts.push_back("always " + machine);
  for (const auto& [machine, part] : pins.memory_share) {
    texts.push_back(fmt::format("{} at most {:.6g}% memory", machine, 100 * part));
  }
  return texts;
}

std::vector<std::string> pins_without(const std::vector<std::string>& texts,
                                      const std::vector<std::string>& machines) {
  const auto names_one = [&](const std::string& text) {
    const auto pins = parse_pins({text});
    MOTLEY_CHECK(pins.ok(), "'{}' is not a pin", text);
    const auto is_named = [&](const std::string& machine) {
      return std::ranges::any_of(pins->layers,
                                 [&](const auto& pin) { return pin.machine == machine; }) ||
             std::ranges::count(pins->never, machine) > 0 ||
             std::ranges::count(pins->always, machine) > 0 || pins->memory_share.contains(machine);
    };
    return std::ranges::any_of(machines, is_named);
  };
  std::vector<std::string> left = texts;
  std::erase_if(left, names_one);
  return left;
}

std::optional<int> pinned_layer(const std::string& layer,
                                const std::vector<std::string>& layer_names) {
  const auto it = std::find(layer_names.begin(), layer_names.end(), layer);
  if (it != layer_names.end()) return static_cast<int>(it - layer_names.begin());
  const auto index = layer_index(layer);
  if (!index || static_cast<std::size_t>(*index) >= layer_names.size()) return std::nullopt;
  return index;
}

Result<void> check_pins(const Pins& pins,
                        const std::vector<std::string>& layer_names,
                        const Cluster& cluster) {
  MOTLEY_TRY(check_machines(pins, cluster));
  const auto excluded = [&](const std::string& machine) {
    return std::find(pins.never.begin(), pins.never.end(), machine) != pins.never.end();
  };
  for (const std::string& machine : pins.always) {
    if (!excluded(machine)) continue;
    return contradiction(fmt::format("machine '{}' is pinned to be used", machine),
                         "another pin excludes it");
  }
  std::map<int, std::string> machine_of_layer;
  for (const auto& pin : pins.layers) {
    const auto layer = pinned_layer(pin.layer, layer_names);
    if (!layer) {
      return unknown_layer(pin.layer, layer_names);
    }
    const auto [it, added] = machine_of_layer.emplace(*layer, pin.machine);
    if (!added && it->second != pin.machine) {
      return contradiction(fmt::format("layer '{}' has two pins", layer_names[*layer]),
                           fmt::format("to '{}' and to '{}'", it->second, pin.machine));
    }
    if (excluded(pin.machine)) {
      return contradiction(
          fmt::format("layer '{}' is pinned to machine '{}'", pin.layer, pin.machine),
          "another pin excludes this machine");
    }
  }
  return {};
}

}  // namespace motley
