// Checks of markup in tests of pictures: well-formedness, and the number of occurrences of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Every '&' begins one of the entities that we use.
inline bool has_only_entities(std::string_view text) {
  for (auto at = text.find('&'); at != std::string::npos; at = text.find('&', at + 1)) {
    const std::string_view rest = text.substr(at);
    const bool known = std::ranges::any_of(
        std::vector<std::string_view>{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"},
        [&](std::string_view entity) { return rest.starts_with(entity); });
    if (!known) return false;
  }
  return true;
}

// Whether the listed elements are closed in the right order; elements that HTML permits to leave
// open are not checked.
inline bool is_well_formed(std::string_view text) {
  std::vector<std::string> open;
  std::size_t at = 0;
  while ((at = text.find('<', at)) != std::string::npos) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag(text.substr(at + 1, end - at - 1));
    const std::string name = tag.substr(0, tag.find_first_of(" /\n", 1));
    at = end;
    if (tag.front() == '?' || tag.front() == '!' || tag.starts_with("meta")) continue;
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty() && has_only_entities(text);
}

}  // namespace motley
