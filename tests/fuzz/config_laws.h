// The properties of configurations: in a file, a message, on the command line, in the environment.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "run_config/config_io.h"
#include "tests/fuzz/laws.h"

namespace motley {

// A valid configuration is written as TOML and as JSON, and both give the same configuration.
inline std::string wrong_with_resolved(const Result<ResolvedConfig>& resolved,
                                       std::string_view source) {
  if (!resolved.ok()) return wrong_error(resolved.error(), {ErrorCode::kConfig}, source);
  const std::string toml = config_to_toml(resolved->config);
  const auto again = resolve_config(toml, "again.toml", {}, {});
  if (!again.ok()) return "written and refused: " + describe(again.error());
  if (config_to_toml(again->config) != toml) return "written and read, and not the same";
  const auto sent = config_from_json(config_to_json(resolved->config), "job");
  if (!sent.ok()) return "sent and refused: " + describe(sent.error());
  return config_to_toml(*sent) == toml ? "" : "sent and read, and not the same";
}

inline std::string wrong_with_config(std::string_view text) {
  return wrong_with_resolved(resolve_config(text, "c.toml", {}, {}), "c.toml");
}

// The text up to the first '=' is the name of a key, the rest its value.
inline std::string wrong_with_setting(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string name(text.substr(0, equals));
  const std::string value(text.substr(std::min(equals + 1, text.size())));
  const std::string set =
      wrong_with_resolved(resolve_config("", "c.toml", {}, {{name, value}}), "--set");
  if (!set.empty()) return set;
  return wrong_with_resolved(resolve_config("", "c.toml", {{"MOTLEY_" + name, value}}, {}),
                             "MOTLEY_");
}

}  // namespace motley
