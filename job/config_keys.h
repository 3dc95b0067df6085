// The table of keys: for each its name, where its value lives in Config, what it may be, and its
// help text. Reading, writing, checking and documenting a configuration all walk this table.
// Private to job/; others use job/config_io.h.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "job/config.h"

namespace motley {

template <class T>
using Access = T& (*)(Config&);

// Where a value lives; the alternative is its type.
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

// Of a list, of each item.
struct NumberRange {
  double low = 0;
  double high = 0;
  bool low_excluded = false;
  bool high_excluded = false;
};

// Of a list, of each item.
struct Choices {
  std::vector<const char*> words;
};

// monostate: any value of the type.
using Rule = std::variant<std::monostate, IntegerRange, NumberRange, Choices>;

struct ConfigEntry {
  std::string name;  // "train.lr"
  Accessor access;
  Rule rule;
  const char* help;

  [[nodiscard]] std::string_view section() const;  // "train"
  [[nodiscard]] std::string_view word() const;     // "lr"
};

// All keys, the keys of a section together, in the order of the documentation.
[[nodiscard]] const std::vector<ConfigEntry>& config_entries();

// nullptr when there is no such key.
[[nodiscard]] const ConfigEntry* find_entry(std::string_view name);

// The sections' names in order.
[[nodiscard]] std::vector<std::string> config_sections();

// The key that a person probably meant by an unknown one, or "". Knows the names that other
// trainers use (learning_rate, batch_size, n_layer, …).
[[nodiscard]] std::string suggest_key(const std::string& unknown);

// "integer", "list of strings", …: the word of ConfigKey::type.
[[nodiscard]] std::string type_name(const ConfigEntry& entry);

}  // namespace motley
