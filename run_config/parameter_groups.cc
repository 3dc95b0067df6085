#include "run_config/parameter_groups.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cstdlib>

namespace motley {
namespace {

constexpr double kFactorMax = 1e6;
constexpr const char* kForm = "write \"PATTERN: lr=FACTOR, weight_decay=FACTOR\"";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Error bad_entry(const std::string& entry, std::string cause, std::string remedy = kForm) {
  return with_key({ErrorCode::kConfig, fmt::format("bad entry of train.groups, '{}'", entry),
                   std::move(cause), std::move(remedy)},
                  "train.groups");
}

std::optional<double> factor_of(std::string_view text) {
  const std::string number(text);
  char* end = nullptr;
  const double factor = std::strtod(number.c_str(), &end);
  const bool is_number = !number.empty() && *end == '\0';
  return is_number && factor >= 0 && factor <= kFactorMax ? std::optional(factor) : std::nullopt;
}

// Sets one "SETTING=VALUE" of the entry.
Result<void> set(ParameterGroup& group, std::string_view setting, const std::string& entry) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    return bad_entry(entry, fmt::format("'{}' is not SETTING=VALUE", setting));
  }
  const std::string_view name = trimmed(setting.substr(0, equals));
  const std::string_view value = trimmed(setting.substr(equals + 1));
  if (name == "optimizer") {
    if (value != "adamw") {
      return bad_entry(entry, fmt::format("optimizer cannot be '{}' in a group", value),
                       "write optimizer=adamw, which excludes hidden matrices from muon");
    }
    group.by_adamw = true;
    return {};
  }
  if (name != "lr" && name != "weight_decay") {
    return bad_entry(entry, fmt::format("'{}' is not a setting of groups", name),
                     "the settings are lr, weight_decay and, with muon, optimizer");
  }
  const auto factor = factor_of(value);
  if (!factor) {
    return bad_entry(
        entry, fmt::format("'{}' is not a factor", value),
        fmt::format("{} multiplies train.{}: write a number from 0 to 1000000", name, name));
  }
  if (name == "lr") {
    group.lr = *factor;
  } else {
    group.weight_decay = *factor;
  }
  return {};
}

Result<ParameterGroup> parse_group(const std::string& entry) {
  const std::size_t colon = entry.rfind(':');
  if (colon == std::string::npos) return bad_entry(entry, "it has no colon behind the pattern");
  ParameterGroup group;
  group.pattern = trimmed(std::string_view(entry).substr(0, colon));
  if (group.pattern.empty()) return bad_entry(entry, "it has no pattern");
  std::string_view settings = std::string_view(entry).substr(colon + 1);
  while (true) {
    const std::size_t comma = settings.find(',');
    MOTLEY_TRY(set(group, trimmed(settings.substr(0, comma)), entry));
    if (comma == std::string_view::npos) return group;
    settings.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<std::vector<ParameterGroup>> parse_parameter_groups(
    const std::vector<std::string>& entries) {
  std::vector<ParameterGroup> groups;
  for (const std::string& entry : entries) {
    MOTLEY_ASSIGN(ParameterGroup group, parse_group(entry));
    groups.push_back(std::move(group));
  }
  return groups;
}

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::optional<std::size_t> group_of(const std::vector<ParameterGroup>& groups,
                                    const std::string& name) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (matches_pattern(groups[i].pattern, name)) return i;
  }
  return std::nullopt;
}

}  // namespace motley
