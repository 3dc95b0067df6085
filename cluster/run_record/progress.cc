#include "cluster/run_record/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <string_view>

#include "plan/quantity_text.h"
#include "record/held_out_result.h"

namespace motley {
namespace {

constexpr double kLiveInterval_s = 0.2;
constexpr double kPlainInterval_s = 5;
constexpr double kSmoothing = 0.1;  // weight of the newest step
constexpr const char* kEraseLine = "\r\x1b[K";
// A line longer than the terminal is cut: a wrapped line could not be erased.
constexpr const char* kWrapOff = "\x1b[?7l";
constexpr const char* kWrapOn = "\x1b[?7h";

std::string hours_minutes_seconds(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

ProgressStyle progress_style(std::FILE* out, const char* term, const char* no_color) {
  const bool live =
      ::isatty(::fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb";
  return {.live = live, .colour = live && (no_color == nullptr || *no_color == '\0')};
}

Progress::Progress(std::FILE* out,
                   ProgressStyle style,
                   std::int64_t done_before,
                   std::int64_t steps_total)
    : out_(::fileno(out)), style_(style), done_before_(done_before), steps_total_(steps_total) {}

void Progress::show(const StepMetrics& metrics, double at_s) {
  // The first step has no step before it: its own length is the first estimate.
  const double took_s = last_step_at_s_ ? at_s - *last_step_at_s_ : metrics.step_s;
  const double weight = last_step_at_s_ ? kSmoothing : 1;
  step_s_smooth_ += weight * (took_s - step_s_smooth_);
  last_step_at_s_ = at_s;

  if (const auto result = held_out_result(metrics)) held_out_ = held_out_text(*result);
  const bool edge = metrics.step == done_before_ + 1 || metrics.step == steps_total_ ||
                    metrics.eval_loss.has_value();
  const double interval_s = style_.live ? kLiveInterval_s : kPlainInterval_s;
  if (!edge && drawn_at_s_ && at_s - *drawn_at_s_ < interval_s) return;
  drawn_at_s_ = at_s;
  draw(line(metrics));
}

void Progress::clear() {
  if (!on_screen_) return;
  out_.write(kEraseLine);
  on_screen_ = false;
  drawn_at_s_.reset();
}

void Progress::finish() {
  if (!on_screen_) return;
  out_.write("\n");
  on_screen_ = false;
}

std::string Progress::held_out_part(const StepMetrics& metrics) const {
  if (held_out_.empty() || (!style_.live && !metrics.eval_loss)) return "";
  return "  " + held_out_;
}

std::string Progress::line(const StepMetrics& metrics) const {
  const double left_s = step_s_smooth_ * static_cast<double>(steps_total_ - metrics.step);
  const std::string loss = !metrics.is_computed ? "virtual"
                           : metrics.without_targets
                               ? "no targets"
                               : fmt::format("loss {:.3f}", metrics.outcome.loss);
  const double rate = style_.samples_a_step > 0
                          ? static_cast<double>(style_.samples_a_step) / metrics.step_s
                          : metrics.tokens_per_s();
  return fmt::format(
      "step {}/{}  {}{}{}  {} {}  {:.2f} s/step  wait {:.0f} %  ETA {}", metrics.step, steps_total_,
      style_.colour ? fmt::format("\x1b[1m{}\x1b[0m", loss) : loss,
      metrics.outcome.skipped ? " (skipped)" : "", held_out_part(metrics), per_second_text(rate),
      style_.rate_unit, metrics.step_s, metrics.wait_share() * 100, hours_minutes_seconds(left_s));
}

void Progress::draw(const std::string& text) {
  if (style_.mute) return;
  if (style_.live) {
    out_.write(fmt::format("{}{}{}{}", kEraseLine, kWrapOff, text, kWrapOn));
    on_screen_ = true;
  } else {
    out_.write(text + '\n');
  }
}

}  // namespace motley
