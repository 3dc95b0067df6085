// Content negotiation between the two metrics formats by a request's Accept field. Pure.
#pragma once

#include <string_view>

namespace motley {

enum class MetricsFormat { kOpenMetrics, kPrometheus };

// OpenMetrics 1.0.0 if it is named and its q is not below that of plain text; otherwise, also
// without an Accept field, the Prometheus text format, which every program reads.
[[nodiscard]] MetricsFormat metrics_format_for(std::string_view accept);

// The value of the response's Content-Type.
[[nodiscard]] std::string_view content_type(MetricsFormat format);

}  // namespace motley
