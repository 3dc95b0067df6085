#include "watch/http/metrics_format.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace motley {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = std::min(text.find_first_not_of(kBlank), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::string_view next_item(std::string_view& list, char separator) {
  const std::size_t end = std::min(list.find(separator), list.size());
  const std::string_view item = trimmed(list.substr(0, end));
  list.remove_prefix(std::min(end + 1, list.size()));
  return item;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

struct Range {
  std::string type;
  std::string version;
  double liking = 1;  // q
};

Range range_of(std::string_view item) {
  Range range;
  range.type = in_lower_case(next_item(item, ';'));
  while (!item.empty()) {
    const std::string parameter = in_lower_case(next_item(item, ';'));
    if (parameter.starts_with("version=")) range.version = parameter.substr(8);
    if (!parameter.starts_with("q=")) continue;
    const char* const end = parameter.data() + parameter.size();
    const auto [stopped, failure] = std::from_chars(parameter.data() + 2, end, range.liking);
    if (failure != std::errc() || stopped != end) range.liking = 0;
  }
  return range;
}

bool is_openmetrics(const Range& range) {
  return range.type == "application/openmetrics-text" &&
         (range.version.empty() || range.version == "1.0.0");
}

bool is_plain_text(const Range& range) {
  return range.type == "text/plain" || range.type == "text/*";
}

}  // namespace

MetricsFormat metrics_format_for(std::string_view accept) {
  double openmetrics = 0;
  double plain = 0;
  while (!accept.empty()) {
    const Range range = range_of(next_item(accept, ','));
    if (is_openmetrics(range)) openmetrics = std::max(openmetrics, range.liking);
    if (is_plain_text(range)) plain = std::max(plain, range.liking);
  }
  return openmetrics > 0 && openmetrics >= plain ? MetricsFormat::kOpenMetrics
                                                 : MetricsFormat::kPrometheus;
}

std::string_view content_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace motley
