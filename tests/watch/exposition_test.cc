#include "watch/metrics/exposition.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

namespace motley {
namespace {

std::vector<MetricFamily> one_of_each() {
  return {
      {"motley_loss", MetricType::kGauge, "", "Loss, in nats.", {{{}, 2.5}}},
      {"motley_sent_bytes",
       MetricType::kCounter,
       "bytes",
       "What was sent.",
       {{{{"from", "0"}, {"to", "1"}}, 4194304}, {{{"from", "1"}, {"to", "0"}}, 0}}},
      {"motley_step_seconds",
       MetricType::kSummary,
       "seconds",
       "A step.",
       {{{{"quantile", "0.5"}}, 0.25}, {{}, 25.5, "_sum"}, {{}, 100, "_count"}}},
      {"motley_run", MetricType::kInfo, "", "The \\run\n\"here\".", {{{{"run", "a\"b\\c\nd"}}, 1}}},
      {"motley_run_state",
       MetricType::kStateSet,
       "",
       "How it is.",
       {{{{"motley_run_state", "training"}}, 1}, {{{"motley_run_state", "ended"}}, 0}}},
  };
}

TEST(Exposition, WritesOpenMetrics) {
  EXPECT_EQ(openmetrics_text(one_of_each()),
            R"(# TYPE motley_loss gauge
# HELP motley_loss Loss, in nats.
motley_loss 2.5
# TYPE motley_sent_bytes counter
# UNIT motley_sent_bytes bytes
# HELP motley_sent_bytes What was sent.
motley_sent_bytes_total{from="0",to="1"} 4194304
motley_sent_bytes_total{from="1",to="0"} 0
# TYPE motley_step_seconds summary
# UNIT motley_step_seconds seconds
# HELP motley_step_seconds A step.
motley_step_seconds{quantile="0.5"} 0.25
motley_step_seconds_sum 25.5
motley_step_seconds_count 100
# TYPE motley_run info
# HELP motley_run The \\run\n\"here\".
motley_run_info{run="a\"b\\c\nd"} 1
# TYPE motley_run_state stateset
# HELP motley_run_state How it is.
motley_run_state{motley_run_state="training"} 1
motley_run_state{motley_run_state="ended"} 0
# EOF
)");
}

TEST(Exposition, WritesTheTextOfPrometheus) {
  EXPECT_EQ(prometheus_text(one_of_each()),
            R"(# HELP motley_loss Loss, in nats.
# TYPE motley_loss gauge
motley_loss 2.5
# HELP motley_sent_bytes_total What was sent.
# TYPE motley_sent_bytes_total counter
motley_sent_bytes_total{from="0",to="1"} 4194304
motley_sent_bytes_total{from="1",to="0"} 0
# HELP motley_step_seconds A step.
# TYPE motley_step_seconds summary
motley_step_seconds{quantile="0.5"} 0.25
motley_step_seconds_sum 25.5
motley_step_seconds_count 100
# HELP motley_run_info The \\run\n"here".
# TYPE motley_run_info gauge
motley_run_info{run="a\"b\\c\nd"} 1
# HELP motley_run_state How it is.
# TYPE motley_run_state gauge
motley_run_state{motley_run_state="training"} 1
motley_run_state{motley_run_state="ended"} 0
)");
}

TEST(Exposition, WritesNumbersAsTheFormatsNameThem) {
  const double infinity = std::numeric_limits<double>::infinity();
  const MetricFamily family{"m",
                            MetricType::kGauge,
                            "",
                            "h",
                            {{{}, infinity}, {{}, -infinity}, {{}, std::nan("")}, {{}, 1e-7}}};
  EXPECT_THAT(prometheus_text({family}), testing::HasSubstr("m +Inf\nm -Inf\nm NaN\nm 1e-07\n"));
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
      plain += text[at] == 'n' ? '\n' : text[at];
    } else {
      plain += text[at];
    }
  }
  return plain;
}

// Whatever a label contains, it stays one line and can be parsed back.
RC_GTEST_PROP(LabelsOfMetrics, ComeBack, ()) {
  const auto value = *rc::gen::container<std::string>(
      rc::gen::element('a', '"', '\\', '\n', '{', '}', ',', ' ', '#', 'n'));
  const std::string text =
      openmetrics_text({{"m", MetricType::kGauge, "", "h", {{{{"l", value}}, 1}}}});
  const std::string before = "# TYPE m gauge\n# HELP m h\nm{l=\"";
  const std::string after = "\"} 1\n# EOF\n";
  RC_ASSERT(text.starts_with(before));
  RC_ASSERT(text.ends_with(after));
  const std::string written =
      text.substr(before.size(), text.size() - before.size() - after.size());
  RC_ASSERT(written.find('\n') == std::string::npos);
  RC_ASSERT(unescaped(written) == value);
}

}  // namespace
}  // namespace motley
