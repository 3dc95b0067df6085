#include "checkpoint/residual_name.h"

#include <fmt/format.h>

#include <charconv>

namespace motley {
namespace {

constexpr std::string_view kResidualPrefix = "residual.";

}  // namespace

std::string residual_name(int holder, const std::string& parameter) {
  return fmt::format("{}{}/{}", kResidualPrefix, holder, parameter);
}

std::optional<ResidualName> parse_residual_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (!name.starts_with(kResidualPrefix) || slash == name.npos) return {};
  ResidualName parsed{0, std::string(name.substr(slash + 1))};
  const char* const end = name.data() + slash;
  const auto number = std::from_chars(name.data() + kResidualPrefix.size(), end, parsed.holder);
  const bool is_number = number.ec == std::errc{} && number.ptr == end && parsed.holder >= 0;
  if (!is_number || residual_name(parsed.holder, parsed.parameter) != name) return {};
  return parsed;
}

std::map<std::string, std::vector<std::string>> residual_names(const Manifest& manifest) {
  std::map<std::string, std::map<int, std::string>> found;  // by parameter and holder
  for (const WrittenFile& file : manifest.files) {
    for (const auto& [name, hash] : file.tensor_hashes) {
      const auto parsed = parse_residual_name(name);
      if (parsed) found[parsed->parameter].emplace(parsed->holder, name);
    }
  }
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [parameter, by_holder] : found) {
    for (const auto& [holder, name] : by_holder) names[parameter].push_back(name);
  }
  return names;
}

}  // namespace motley
