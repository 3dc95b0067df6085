// Which of the two formats of metrics a program asks for, by its request's Accept. Pure.
#pragma once

#include <string_view>

namespace motley {

enum class MetricsFormat { kOpenMetrics, kPrometheus };

// OpenMetrics 1.0.0 where it is named, and not less liked than plain text; else the text of
// Prometheus, which every program reads, as of one that says nothing.
[[nodiscard]] MetricsFormat metrics_format_for(std::string_view accept);

// As an answer's Content-Type says it.
[[nodiscard]] std::string_view content_type(MetricsFormat format);

}  // namespace motley
