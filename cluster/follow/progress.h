// Progress: how a run goes, for people: one live line on a terminal, else a plain line now and
// then.
//
//   step 120/1000  loss 2.314  held-out 2.401  1,234 tok/s  0.41 s/step  wait 8 %  ETA 0:05:31
//
// The held-out loss, with the share predicted right where the model counts that, stands there when
// it was just measured, on the live line also afterwards. On virtual devices "virtual" stands in
// the place of the loss. What nobody reads is dropped.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/system/non_blocking_writer.h"
#include "cluster/follow/metrics.h"

namespace motley {

struct ProgressStyle {
  bool live = false;                     // redraw one line
  bool colour = false;                   // only together with live
  bool mute = false;                     // draw nothing
  std::string_view rate_unit = "tok/s";  // of static duration
  std::int64_t samples_a_step = 0;       // that the rate counts; 0 = it counts tokens
};

// Live on a terminal that can move its cursor, in colour unless the environment has NO_COLOR
// (no-color.org). The values of TERM and NO_COLOR are passed in; nullptr = not set.
[[nodiscard]] ProgressStyle progress_style(std::FILE* out, const char* term, const char* no_color);

// One owner thread. Times are monotonic seconds, given by the caller.
class Progress {
 public:
  // Steps after `done_before` up to `steps_total` will come. REQUIRES: out outlives this.
  Progress(std::FILE* out, ProgressStyle style, std::int64_t done_before, std::int64_t steps_total);

  // A step has ended. Draws if it is the first or the last one, if the held-out loss was measured
  // after it, or if the last drawing was long enough ago: a fifth of a second when live, five
  // seconds else.
  void show(const StepMetrics& metrics, double at_s);

  // Takes the live line off the screen, before something else is printed; the next step draws
  // again.
  void clear();

  // Ends the live line so that it stays readable above what follows.
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
  double step_s_smooth_ = 0;  // from step to step, pauses for checkpoints included
  std::optional<double> drawn_at_s_;
  std::string held_out_;  // when last measured
  bool on_screen_ = false;
};

}  // namespace motley
