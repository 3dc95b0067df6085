// Metrics exposition for monitoring programs: families of samples, and two text formats. Pure.
// watch/metrics/run_metrics.h defines the metrics of a run.
//
// OpenMetrics 1.0.0 (https://openmetrics.io) has units and more types; the older Prometheus text
// format is read by every program, including promtool.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace motley {

enum class MetricType { kGauge, kCounter, kSummary, kInfo, kStateSet };

struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
  std::string suffix = {};  // of a summary: "_sum", "_count"; other types have fixed suffixes
};

struct MetricFamily {
  std::string name;  // ends in its unit; without "_total" and "_info"
  MetricType type = MetricType::kGauge;
  std::string unit;  // "seconds"; "" = none
  std::string help;  // one sentence
  std::vector<MetricSample> samples;
};

[[nodiscard]] std::string openmetrics_text(const std::vector<MetricFamily>& families);
// The text format 0.0.4; info and state-set families become gauges.
[[nodiscard]] std::string prometheus_text(const std::vector<MetricFamily>& families);

}  // namespace motley
