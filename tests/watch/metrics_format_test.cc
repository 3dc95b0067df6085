#include "watch/http/metrics_format.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(MetricsFormat, IsOpenMetricsForWhoAsksForIt) {
  for (const char* accept : {
           "application/openmetrics-text; version=1.0.0; charset=utf-8",
           "application/openmetrics-text",
           "Application/OpenMetrics-Text;Version=1.0.0",
           // As sent by Prometheus 2 and 3.
           "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
           "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
           "application/openmetrics-text;escaping=allow-utf-8;version=1.0.0;q=0.6,application/"
           "openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2",
           " text/plain;q=0.1 , application/openmetrics-text ;q=0.9 ",
       }) {
    EXPECT_EQ(metrics_format_for(accept), MetricsFormat::kOpenMetrics) << accept;
  }
}

TEST(MetricsFormat, IsPlainTextForAllOthers) {
  for (const char* accept :
       {"", "*/*", "text/plain", "text/html,*/*;q=0.8",
        "application/openmetrics-text;version=0.0.1", "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.1,text/plain;q=0.9", "application/openmetrics-text;q=x",
        "application/openmetrics-textual", ",;,;=,q=1"}) {
    EXPECT_EQ(metrics_format_for(accept), MetricsFormat::kPrometheus) << accept;
  }
}

}  // namespace
}  // namespace motley
