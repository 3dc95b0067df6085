// Progress: displays a run's progress: one live line on a terminal, else occasional plain lines.
//
//   step 120/1000  loss 2.314  held-out 2.401  1,234 tok/s  0.41 s/step  wait 8 %  ETA 0:05:31
//
// The result of an evaluation, "held-out 2.401 (perplexity 11.03), 45.31 % correct", is included
// when it was just measured, on the live line also afterwards. On simulated devices "virtual"
// replaces the loss. Output that the terminal does not accept at once is dropped.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/system/non_blocking_writer.h"
#include "record/step_metrics.h"

namespace motley {

struct ProgressStyle {
  bool live = false;                     // redraw one line
  bool colour = false;                   // only together with live
  bool mute = false;                     // draw nothing
  std::string_view rate_unit = "tok/s";  // of static duration
  std::int64_t samples_a_step = 0;       // samples per step for the rate; 0 = it counts tokens
};

// Live on a terminal that can move its cursor, in colour unless the environment has NO_COLOR
// (no-color.org). The values of TERM and NO_COLOR are passed in; nullptr = not set.
[[nodiscard]] ProgressStyle progress_style(std::FILE* out, const char* term, const char* no_color);

// One owner thread. Times are monotonic seconds, passed in.
class Progress {
 public:
  // The steps after `done_before` up to `steps_total` will be shown. REQUIRES: out outlives this.
  Progress(std::FILE* out, ProgressStyle style, std::int64_t done_before, std::int64_t steps_total);

  // To be called after a step. Draws if it is the first or the last one, if the held-out loss was
  // measured after it, or if the last drawing was long enough ago: 0.2 s if live, else 5 s.
  void show(const StepMetrics& metrics, double at_s);

  // Erases the live line before other output; the next step draws it again.
  void clear();

  // Ends the live line so that it stays above later output.
  void finish();

 private:
  [[nodiscard]] std::string line(const StepMetrics& metrics) const;
  [[nodiscard]] std::string held_out_part(const StepMetrics& metrics) const;
  void draw(const std::string& text);

  NonBlockingWriter out_;
  ProgressStyle style_;
  std::int64_t done_before_;
  std::int64_t steps_total_;
  std::optional<double> last_step_at_s_;
  double step_s_smooth_ = 0;  // from step to step, including pauses for checkpoints
  std::optional<double> drawn_at_s_;
  std::string held_out_;  // last measured value
  bool on_screen_ = false;
};

}  // namespace motley
