// Typed and range-checked values of an untrusted JSON document. base/json/json_table.h reads and
// writes whole structs.
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

// Bytes of a text for display in a file.
inline constexpr std::size_t kTextMax = 4096;

// Reads one value of a document, usually an object; document and source must outlive it. All errors
// have the given code and name the value, with line and column if the source has text.
class JsonFields {
 public:
  JsonFields(const Json& document, const JsonSource& source, ErrorCode code)
      : value_(&document), source_(&source), code_(code) {}

  [[nodiscard]] Result<std::int64_t> integer(std::int64_t min, std::int64_t max) const;
  // Finite, from 0 to `max`.
  [[nodiscard]] Result<double> quantity(double max) const;
  [[nodiscard]] Result<bool> boolean() const;
  // At most kTextMax bytes.
  [[nodiscard]] Result<std::string> text() const;
  // Letters, digits and the given other characters only (is_word below).
  [[nodiscard]] Result<std::string> word(const char* others) const;
  // One of `words`.
  [[nodiscard]] Result<std::string> one_of(std::span<const char* const> words) const;
  // The items of an array of such a size.
  [[nodiscard]] Result<std::vector<JsonFields>> items(std::size_t size_min,
                                                      std::size_t size_max) const;
  // Keys and values of an object of at most `size_max`, in key order.
  [[nodiscard]] Result<std::vector<std::pair<std::string, JsonFields>>> members(
      std::size_t size_max) const;

  // The member of an object, of any type.
  [[nodiscard]] Result<JsonFields> member(const char* key) const;

  [[nodiscard]] bool has(const char* key) const { return value_->contains(key); }

  // The values above, of the member `key`.
  [[nodiscard]] Result<std::int64_t> integer(const char* key,
                                             std::int64_t min,
                                             std::int64_t max) const;
  [[nodiscard]] Result<double> quantity(const char* key,
                                        double max = std::numeric_limits<double>::max()) const;
  [[nodiscard]] Result<bool> boolean(const char* key) const;
  [[nodiscard]] Result<std::string> text(const char* key) const;
  [[nodiscard]] Result<std::string> word(const char* key, const char* others) const;
  [[nodiscard]] Result<std::string> one_of(const char* key,
                                           std::span<const char* const> words) const;
  [[nodiscard]] Result<std::vector<JsonFields>> items(const char* key,
                                                      std::size_t size_min,
                                                      std::size_t size_max) const;
  [[nodiscard]] Result<std::vector<std::pair<std::string, JsonFields>>> members(
      const char* key, std::size_t size_max) const;
  // The texts of the member, which must be an array of at most `size_max`.
  [[nodiscard]] Result<std::vector<std::string>> texts(const char* key, std::size_t size_max) const;

  // For values without their own place in errors.
  [[nodiscard]] const Json& value() const { return *value_; }

  // Checks the members "format" and "version".
  [[nodiscard]] Result<void> header(const std::string& format, std::int64_t version) const;
  // The same for a program that reads several versions. Returns the version.
  [[nodiscard]] Result<std::int64_t> header(const std::string& format,
                                            std::int64_t version_min,
                                            std::int64_t version_max) const;

  // An error about this value, or about its member `key`.
  [[nodiscard]] Error bad(const std::string& cause) const;
  [[nodiscard]] Error bad(const char* key, const std::string& cause) const;

 private:
  JsonFields(const JsonFields& parent, const Json& value, JsonPath path)
      : value_(&value), source_(parent.source_), path_(std::move(path)), code_(parent.code_) {}

  const Json* value_;
  const JsonSource* source_;
  JsonPath path_;
  ErrorCode code_;
};

// 1 to 200 letters, digits and other given characters.
[[nodiscard]] bool is_word(const std::string& text, const char* others);

}  // namespace motley
