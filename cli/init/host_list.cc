#include "cli/init/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/toml.h"

namespace motley {
namespace {

constexpr std::string_view kDigits = "0123456789";

Error not_a_list(std::string_view text, std::string cause) {
  return {ErrorCode::kConfig,
          fmt::format("'{}' is not a list of hosts", excerpt(std::string(text))), std::move(cause),
          "write the cluster file by hand: docs/formats/cluster.md"};
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const bool is_plain = !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
  if (!is_plain || parsed.ec != std::errc() || parsed.ptr != end) return {};
  return value;
}

// The parts between commas that are in no brackets.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> found;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      found.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']') {
      --depth;
    }
  }
  return found;
}

// The content of brackets: "01-03,7" is 01, 02, 03 and 7.
Result<std::vector<std::string>> expand_ranges(std::string_view text) {
  std::vector<std::string> found;
  for (const std::string_view part : parts(text)) {
    const std::size_t dash = part.find('-');
    const std::string_view low = part.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : part.substr(dash + 1);
    const auto first = number(low);
    const auto last = number(high);
    if (!first || !last || *first > *last) {
      return not_a_list(text, fmt::format("'{}' is not a range of numbers", part));
    }
    if (static_cast<std::size_t>(*last - *first) + found.size() >= kListedHostsMax) {
      return not_a_list(text, fmt::format("it has more than {} hosts", kListedHostsMax));
    }
    for (int i = *first; i <= *last; ++i) found.push_back(fmt::format("{:0{}}", i, low.size()));
  }
  return found;
}

// One name with its brackets.
Result<std::vector<std::string>> expand_name(std::string_view name) {
  std::vector<std::string> found = {""};
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    for (std::string& each : found) each += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) return not_a_list(name, "a bracket is not closed");
    MOTLEY_ASSIGN(const auto numbers, expand_ranges(name.substr(open + 1, close - open - 1)));
    if (found.size() * numbers.size() > kListedHostsMax) {
      return not_a_list(name, fmt::format("it has more than {} hosts", kListedHostsMax));
    }
    std::vector<std::string> longer;
    for (const std::string& each : found) {
      for (const std::string& digits : numbers) longer.push_back(each + digits);
    }
    found = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return found;
}

}  // namespace

bool is_host_name(std::string_view text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:";
  return !text.empty() && text.size() <= 255 && text.front() != '-' &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

Result<std::vector<std::string>> expand_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string_view part : parts(text)) {
    MOTLEY_ASSIGN(const auto names, expand_name(part));
    for (const std::string& name : names) {
      if (!is_host_name(name))
        return not_a_list(text, fmt::format("'{}' is not a host", excerpt(name)));
      if (hosts.size() == kListedHostsMax) {
        return not_a_list(text, fmt::format("it has more than {} hosts", kListedHostsMax));
      }
      hosts.push_back(name);
    }
  }
  return hosts;
}

Result<std::vector<int>> expand_counts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string_view part : parts(text)) {
    const std::size_t times = part.find("(x");
    const auto count = number(part.substr(0, times));
    std::optional<int> repeated = 1;
    if (times != std::string_view::npos) {
      const std::string_view rest = part.substr(times + 2);
      repeated = rest.ends_with(')') ? number(rest.substr(0, rest.size() - 1)) : std::nullopt;
    }
    if (!count || !repeated ||
        counts.size() + static_cast<std::size_t>(*repeated) > kListedHostsMax) {
      return not_a_list(text, fmt::format("'{}' is not a number of processors, as in 16(x2),8",
                                          excerpt(std::string(part))));
    }
    counts.insert(counts.end(), static_cast<std::size_t>(*repeated), *count);
  }
  return counts;
}

Result<std::vector<std::string>> hosts_of_file(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string> hosts;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) continue;
    line.remove_prefix(begin);
    std::string host(line.substr(0, line.find_first_of(kBlank)));
    // MPICH's "box:4", but not an IPv6 address.
    if (std::ranges::count(host, ':') == 1) host.resize(host.find(':'));
    if (!is_host_name(host)) {
      return Error{ErrorCode::kConfig,
                   fmt::format("line {} of the list of hosts names no host", line_number),
                   fmt::format("it begins with '{}'", excerpt(host)),
                   host.find('@') != std::string::npos
                       ? "leave the user out, and set it in ~/.ssh/config or in the cluster file"
                       : "begin each line with the name or the address of a host"};
    }
    if (std::ranges::find(hosts, host) != hosts.end()) continue;
    if (hosts.size() == kListedHostsMax) {
      return not_a_list(host, fmt::format("the file has more than {} hosts", kListedHostsMax));
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

}  // namespace motley
