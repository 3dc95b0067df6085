#include "base/process/progress_line.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/system/blocked_signals.h"

namespace motley {
namespace {

constexpr double kQuiet_s = 0.5;  // shorter work draws nothing
constexpr double kRedraw_s = 0.2;

}  // namespace

std::FILE* live_standard_error() {
  return is_live_terminal(stderr, std::getenv("TERM")) ? stderr : nullptr;
}

ProgressLine::ProgressLine(std::string what, std::FILE* live)
    : began_s_(now_s()), what_(std::move(what)), next_draw_s_(began_s_ + kQuiet_s) {
  if (live == nullptr) return;
  line_.emplace(live);
  const BlockedSignals no_signals;
  drawer_ = std::thread([this] { draw_until_end(); });
}

ProgressLine::~ProgressLine() {
  if (!line_) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    line_->clear();
  }
  changed_.notify_all();
  drawer_.join();
}

void ProgressLine::say(std::string what) {
  if (!line_) return;
  const std::lock_guard lock(mutex_);
  set(std::move(what), {});
}

void ProgressLine::follow(std::function<std::string()> what) {
  if (!line_) return;
  const std::lock_guard lock(mutex_);
  std::string now = what();
  set(std::move(now), std::move(what));
}

void ProgressLine::set(std::string what, std::function<std::string()> followed) {
  if (what_.empty()) changed_.notify_all();
  what_ = std::move(what);
  followed_ = std::move(followed);
  if (what_.empty()) line_->clear();
}

void ProgressLine::step_aside() {
  if (!line_) return;
  const std::lock_guard lock(mutex_);
  line_->clear();
  next_draw_s_ = now_s() + kQuiet_s;
}

Log::Output ProgressLine::log_output() {
  return [this](std::string_view text) {
    step_aside();
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
}

void ProgressLine::draw_until_end() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (what_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const double at_s = now_s();
    if (at_s >= next_draw_s_) {
      next_draw_s_ = at_s + kRedraw_s;
      if (followed_) what_ = followed_();
      line_->show(fmt::format("{}, {:.0f} s", what_, at_s - began_s_));
    }
    changed_.wait_for(lock, std::chrono::duration<double>(next_draw_s_ - at_s));
  }
}

}  // namespace motley
