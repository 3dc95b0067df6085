#include "watch/metrics/exposition.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace motley {
namespace {

// In a label's value quotes are escaped too; help text is not quoted.
std::string escaped(std::string_view text, bool quotes) {
  std::string all;
  for (const char c : text) {
    if (c == '\\') {
      all += "\\\\";
    } else if (c == '\n') {
      all += "\\n";
    } else if (c == '"' && quotes) {
      all += "\\\"";
    } else {
      all += c;
    }
  }
  return all;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

const char* suffix_of(MetricType type) {
  if (type == MetricType::kCounter) return "_total";
  return type == MetricType::kInfo ? "_info" : "";
}

std::string_view openmetrics_word(MetricType type) {
  switch (type) {
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kCounter:
      return "counter";
    case MetricType::kSummary:
      return "summary";
    case MetricType::kInfo:
      return "info";
    case MetricType::kStateSet:
      return "stateset";
  }
  return "unknown";
}

std::string_view prometheus_word(MetricType type) {
  const bool is_known_there = type == MetricType::kCounter || type == MetricType::kSummary;
  return is_known_there ? openmetrics_word(type) : "gauge";
}

void write_samples(const MetricFamily& family, std::string& text) {
  for (const MetricSample& sample : family.samples) {
    text += family.name;
    text += suffix_of(family.type);
    text += sample.suffix;
    char before = '{';
    for (const auto& [name, value] : sample.labels) {
      text += fmt::format("{}{}=\"{}\"", before, name, escaped(value, /*quotes=*/true));
      before = ',';
    }
    if (before == ',') text += '}';
    text += fmt::format(" {}\n", number_text(sample.value));
  }
}

}  // namespace

std::string openmetrics_text(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    text += fmt::format("# TYPE {} {}\n", family.name, openmetrics_word(family.type));
    if (!family.unit.empty()) text += fmt::format("# UNIT {} {}\n", family.name, family.unit);
    text += fmt::format("# HELP {} {}\n", family.name, escaped(family.help, /*quotes=*/true));
    write_samples(family, text);
  }
  return text + "# EOF\n";
}

std::string prometheus_text(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    const std::string name = family.name + suffix_of(family.type);
    text += fmt::format("# HELP {} {}\n", name, escaped(family.help, /*quotes=*/false));
    text += fmt::format("# TYPE {} {}\n", name, prometheus_word(family.type));
    write_samples(family, text);
  }
  return text;
}

}  // namespace motley
