#include "tools/ckpt/terminal_watch.h"

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"

namespace motley {
namespace {

constexpr double kQuiet_s = 0.5;  // what is over sooner draws nothing
constexpr double kRedraw_s = 0.2;

}  // namespace

TerminalWatch::TerminalWatch() : next_draw_s_(now_s() + kQuiet_s) {
  if (is_live_terminal(stderr, std::getenv("TERM"))) live_.emplace(stderr);
}

TerminalWatch::~TerminalWatch() {
  clear();
}

void TerminalWatch::clear() {
  if (live_) live_->clear();
}

void TerminalWatch::begin(const char* what, std::uint64_t bytes_total) {
  task_.reset();
  task_.emplace(counter_, what, bytes_total);
}

Result<void> TerminalWatch::advance(std::uint64_t bytes) {
  if (auto stop = signals_.take()) return *std::move(stop);
  counter_.add_bytes(bytes);
  if (live_ && now_s() >= next_draw_s_) {
    live_->show(counter_.words());
    next_draw_s_ = now_s() + kRedraw_s;
  }
  return {};
}

}  // namespace motley
