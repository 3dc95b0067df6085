// One configuration value: from Json into Config with type and range checks, and back. Private to
// run_config/.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "run_config/config_keys.h"

namespace motley {

// Sets the key from a parsed value; integers are accepted where numbers are expected. `where` names
// the position in errors. kConfig for a wrong type or a value that the entry's rule forbids.
[[nodiscard]] Result<void> set_value(Config& config,
                                     const ConfigEntry& entry,
                                     const Json& value,
                                     const std::string& where);

// The same from a TOML value as text; for a string key also from bare text.
[[nodiscard]] Result<void> set_value_from_text(Config& config,
                                               const ConfigEntry& entry,
                                               const std::string& text,
                                               const std::string& where);

[[nodiscard]] Json get_value(const Config& config, const ConfigEntry& entry);

// In TOML notation; a number has the shortest text that reads back to the same bits.
[[nodiscard]] std::string value_to_toml(const Config& config, const ConfigEntry& entry);

}  // namespace motley
