// Typed, ranged members of a JSON document that may come from a stranger.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_position.h"
#include "base/result.h"

namespace motley {

// Reads one value of a document, mostly an object; document and source must outlive it. All errors
// have the code that was given and name the value, with line and column where the source has text.
class JsonFields {
 public:
  JsonFields(const Json& document, const JsonSource& source, ErrorCode code)
      : value_(&document), source_(&source), code_(code) {}

  [[nodiscard]] Result<std::int64_t> integer(const char* key,
                                             std::int64_t min,
                                             std::int64_t max) const;
  // Finite, from 0 to `max`.
  [[nodiscard]] Result<double> quantity(const char* key,
                                        double max = std::numeric_limits<double>::max()) const;
  [[nodiscard]] Result<bool> boolean(const char* key) const;
  // At most 4096 bytes.
  [[nodiscard]] Result<std::string> text(const char* key) const;
  // Letters, digits and the given other characters only (is_word below).
  [[nodiscard]] Result<std::string> word(const char* key, const char* others) const;

  // One of these.
  [[nodiscard]] Result<std::string> one_of(const char* key,
                                           std::span<const char* const> words) const;

  // The items of the member that must be an array of that many.
  [[nodiscard]] Result<std::vector<JsonFields>> items(const char* key,
                                                      std::size_t size_min,
                                                      std::size_t size_max) const;
  // The same of this value itself.
  [[nodiscard]] Result<std::vector<JsonFields>> items(std::size_t size_min,
                                                      std::size_t size_max) const;
  // Keys and values of the member that must be an object of at most so many, in the order of the
  // keys.
  [[nodiscard]] Result<std::vector<std::pair<std::string, JsonFields>>> members(
      const char* key, std::size_t size_max) const;
  // The member itself, of any type.
  [[nodiscard]] Result<JsonFields> member(const char* key) const;
  // The texts of the member that must be an array of at most so many.
  [[nodiscard]] Result<std::vector<std::string>> texts(const char* key, std::size_t size_max) const;

  [[nodiscard]] bool has(const char* key) const { return value_->contains(key); }

  // For what has no place of its own in errors.
  [[nodiscard]] const Json& value() const { return *value_; }

  // Checks the members "format" and "version".
  [[nodiscard]] Result<void> header(const std::string& format, std::int64_t version) const;
  // The same of a program that reads several versions; returns which one it is.
  [[nodiscard]] Result<std::int64_t> header(const std::string& format,
                                            std::int64_t version_min,
                                            std::int64_t version_max) const;

  // The error of this value, or of its member `key`.
  [[nodiscard]] Error bad(const std::string& cause) const;
  [[nodiscard]] Error bad(const char* key, const std::string& cause) const;

 private:
  JsonFields(const JsonFields& parent, const Json& value, JsonPath path)
      : value_(&value), source_(parent.source_), path_(std::move(path)), code_(parent.code_) {}

  [[nodiscard]] Result<std::string> as_text() const;

  const Json* value_;
  const JsonSource* source_;
  JsonPath path_;
  ErrorCode code_;
};

// Letters, digits and the given other characters, between 1 and 200 of them.
[[nodiscard]] bool is_word(const std::string& text, const char* others);

inline constexpr const char* kMachineNameOthers = "._-";
inline constexpr const char* kDeviceNameOthers = "._-:";

}  // namespace motley
