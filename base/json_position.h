// Where the values of a JSON text stand, so that an error can say line and column. Nothing is kept
// while a text is read; the place is searched for when there is an error to report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source_place.h"

namespace motley {

// From the root to a value: keys of objects and indexes of arrays.
using JsonPath = std::vector<std::variant<std::string, std::size_t>>;

// "devices[0].layers.gpt2", for people.
[[nodiscard]] std::string describe(const JsonPath& path);

// Where the value at `path` begins, or nullopt when there is none. Any text is safe.
[[nodiscard]] std::optional<SourcePlace> json_position(std::string_view text, const JsonPath& path);

// What a JSON parser takes and we refuse.
struct JsonFlaw {
  std::size_t offset = 0;  // into the text
  std::string cause;
};

// The first place where values are nested deeper than `depth_max`, or an object has a key twice
// (which of the two counts is up to the reader). Any text is safe; syntax is not checked.
[[nodiscard]] std::optional<JsonFlaw> find_json_flaw(std::string_view text, int depth_max);

// What a JSON value came from, for errors: a name, and the text where it is at hand.
class JsonSource {
 public:
  JsonSource(std::string name) : name_(std::move(name)) {}  // NOLINT

  JsonSource(const char* name) : name_(name) {}  // NOLINT

  // The text must outlive it.
  JsonSource(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {}

  // "plan.json:12:7", or only the name.
  [[nodiscard]] std::string where(const JsonPath& path) const;

 private:
  std::string name_;
  std::string_view text_;
};

}  // namespace motley
