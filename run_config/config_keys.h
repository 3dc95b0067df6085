// The table of keys: for each its name, its member in Config, its valid values, and its help text.
// Reading, writing, checking and documenting a configuration all use this table. Private to
// run_config/; other code uses run_config/config_io.h.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "run_config/config.h"

namespace motley {

template <class T>
using Access = T& (*)(Config&);

// A key's member in Config; the alternative is its type.
using Accessor = std::variant<Access<bool>,
                              Access<int>,
                              Access<std::int64_t>,
                              Access<double>,
                              Access<std::string>,
                              Access<std::vector<std::int64_t>>,
                              Access<std::vector<double>>,
                              Access<std::vector<std::string>>>;

// Inclusive; for a list, of each item. The range of an `int` key fits an int.
struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

// For a list, of each item.
struct NumberRange {
  double low = 0;
  double high = 0;
  bool low_excluded = false;
  bool high_excluded = false;
};

// For a list, of each item.
struct Choices {
  std::vector<const char*> words;
};

// monostate: any value of the type.
using Rule = std::variant<std::monostate, IntegerRange, NumberRange, Choices>;

struct ConfigEntry {
  std::string name;  // "train.lr"
  Accessor access;
  Rule rule;
  std::string help;

  [[nodiscard]] std::string_view section() const;  // "train"
  [[nodiscard]] std::string_view word() const;     // "lr"
};

// All keys, grouped by section, in the order of the documentation.
[[nodiscard]] const std::vector<ConfigEntry>& config_entries();

// nullptr if there is no such key.
[[nodiscard]] const ConfigEntry* find_entry(std::string_view name);

// The names of the sections, in order.
[[nodiscard]] std::vector<std::string> config_sections();

// The key probably meant by an unknown one, or "". Includes the names in other trainers
// (learning_rate, batch_size, n_layer, …).
[[nodiscard]] std::string suggest_key(const std::string& unknown);

// The only values of a key, of a list those of an item; empty if there are others.
[[nodiscard]] std::vector<std::string> choices_of(const ConfigEntry& entry);

// "integer", "list of strings", …: the word of ConfigKey::type.
[[nodiscard]] std::string type_name(const ConfigEntry& entry);

}  // namespace motley
