#include "checkpoint/residual_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace motley {
namespace {

// [ResidualKind]
constexpr std::array<std::string_view, 4> kPrefixes = {"residual.", "unsent.", "velocity.",
                                                       "round_residual."};

}  // namespace

std::string residual_name(int member, const std::string& parameter, ResidualKind residual_kind) {
  return fmt::format("{}{}/{}", kPrefixes[static_cast<std::size_t>(residual_kind)], member,
                     parameter);
}

std::optional<ResidualName> parse_residual_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  const auto prefix = std::ranges::find_if(
      kPrefixes, [&](std::string_view each) { return name.starts_with(each); });
  if (prefix == kPrefixes.end() || slash == name.npos) return {};
  ResidualName parsed{static_cast<ResidualKind>(prefix - kPrefixes.begin()), 0,
                      std::string(name.substr(slash + 1))};
  const char* const end = name.data() + slash;
  const auto number = std::from_chars(name.data() + prefix->size(), end, parsed.member);
  const bool is_number = number.ec == std::errc{} && number.ptr == end && parsed.member >= 0;
  if (!is_number || residual_name(parsed.member, parsed.parameter, parsed.residual_kind) != name)
    return {};
  return parsed;
}

std::map<std::string, std::vector<std::string>> residual_names(const Manifest& manifest,
                                                               ResidualKind residual_kind) {
  std::map<std::string, std::map<int, std::string>> found;  // by parameter and member
  for (const WrittenFile& file : manifest.files) {
    for (const auto& [name, hash] : file.tensor_hashes) {
      const auto parsed = parse_residual_name(name);
      if (parsed && parsed->residual_kind == residual_kind)
        found[parsed->parameter].emplace(parsed->member, name);
    }
  }
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [parameter, by_member] : found) {
    for (const auto& [member, name] : by_member) names[parameter].push_back(name);
  }
  return names;
}

}  // namespace motley
