// Positions of values in a JSON text, so that an error can name line and column. Parsing records no
// positions; they are searched for when there is an error to report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source_position.h"

namespace motley {

// The path from the root to a value: keys of objects and indices of arrays.
using JsonPath = std::vector<std::variant<std::string, std::size_t>>;

// "devices[0].layers.gpt2", for messages.
[[nodiscard]] std::string describe(const JsonPath& path);

// Where the value at `path` begins, or nullopt if there is none. Safe on any text.
[[nodiscard]] std::optional<SourcePosition> json_position(std::string_view text,
                                                          const JsonPath& path);

// A defect that JSON parsers accept but Motley rejects.
struct JsonFlaw {
  std::size_t offset = 0;  // in the text
  std::string cause;
};

// The first position where values are nested deeper than `depth_max` or an object has a duplicate
// key, which JSON readers interpret differently. Safe on any text; does not check syntax.
[[nodiscard]] std::optional<JsonFlaw> find_json_flaw(std::string_view text, int depth_max);

// The source of a JSON value, for errors: a name, and the text if it is available.
class JsonSource {
 public:
  JsonSource(std::string name) : name_(std::move(name)) {}  // NOLINT

  JsonSource(const char* name) : name_(name) {}  // NOLINT

  // The text must outlive this object.
  JsonSource(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {}

  // "plan.json:12:7", or only the name.
  [[nodiscard]] std::string where(const JsonPath& path) const;

 private:
  std::string name_;
  std::string_view text_;
};

}  // namespace motley
