// Typed, ranged members of a JSON object that may come from a stranger.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace motley {

// Reads one object. `object` must outlive it. `place` names the object in errors, such as
// "plan.json: ranks[2]"; all errors have the code that was given and name the key.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string place, ErrorCode code)
      : object_(object), place_(std::move(place)), code_(code) {}

  [[nodiscard]] Result<std::int64_t> integer(const char* key,
                                             std::int64_t min,
                                             std::int64_t max) const;
  // Finite and not negative.
  [[nodiscard]] Result<double> quantity(const char* key) const;
  [[nodiscard]] Result<bool> flag(const char* key) const;
  [[nodiscard]] Result<std::string> text(const char* key) const;
  // Letters, digits and the given other characters only (is_word below).
  [[nodiscard]] Result<std::string> word(const char* key, const char* others) const;
  // The member, which must be an array of at most that many items. Lives as long as `object`.
  [[nodiscard]] Result<const Json*> array(const char* key, std::size_t size_max) const;
  [[nodiscard]] Result<const Json*> object(const char* key) const;

  // Checks the members "format" and "version".
  [[nodiscard]] Result<void> header(const std::string& format, std::int64_t version) const;

  [[nodiscard]] Error bad(const std::string& cause) const;

 private:
  template <class T>
  [[nodiscard]] Result<T> get(const char* key) const;
  [[nodiscard]] Result<const Json*> member(const char* key) const;

  const Json& object_;
  std::string place_;
  ErrorCode code_;
};

// Letters, digits and the given other characters, between 1 and 200 of them.
[[nodiscard]] bool is_word(const std::string& text, const char* others);

inline constexpr const char* kMachineNameOthers = "._-";
inline constexpr const char* kDeviceNameOthers = "._-:";

}  // namespace motley
