// Metrics as monitoring programs read them: families of samples, and the two text formats that they
// are written in. Pure. What a run tells is in watch/metrics/run_metrics.h.
//
// OpenMetrics 1.0.0 (https://openmetrics.io) has units and more types; the older text of Prometheus
// has what every program reads, promtool among them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace motley {

enum class MetricType { kGauge, kCounter, kSummary, kInfo, kStateSet };

struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
  std::string suffix = {};  // of a summary: "_sum", "_count"; other types bring their own
};

struct MetricFamily {
  std::string name;  // ends in its unit; without "_total" and "_info"
  MetricType type = MetricType::kGauge;
  std::string unit;  // "seconds"; "" = none
  std::string help;  // one sentence
  std::vector<MetricSample> samples;
};

[[nodiscard]] std::string openmetrics_text(const std::vector<MetricFamily>& families);
// The text format 0.0.4: an info and a set of states are gauges there.
[[nodiscard]] std::string prometheus_text(const std::vector<MetricFamily>& families);

}  // namespace motley
