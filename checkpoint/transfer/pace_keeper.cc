#include "checkpoint/transfer/pace_keeper.h"

#include <algorithm>

namespace motley {
namespace {

constexpr double kMinute_s = 60;
constexpr double kMinutes = 10;
// Others use the link when a part takes so many times the fastest, and so much longer: threads that
// wait for a processor are late by less.
constexpr double kBusyRatio = 2;
constexpr double kBusyDelay_s = 0.002;
// Pauses of parts in a row that met others, as multiples of what they took.
constexpr double kFirstMultiple = 4;
constexpr double kLastMultiple = 32;

}  // namespace

double PaceKeeper::pause_after_s(double took_s, double now_s) {
  remember(took_s, now_s);
  const double fastest = fastest_s();
  const bool is_busy = took_s > kBusyRatio * fastest && took_s > fastest + kBusyDelay_s;
  if (!is_busy) {
    multiple_ = 0;
    return took_s;
  }
  multiple_ = multiple_ == 0 ? kFirstMultiple : std::min(2 * multiple_, kLastMultiple);
  return std::max(took_s, std::min(multiple_ * took_s, kLongestPause_s));
}

void PaceKeeper::remember(double took_s, double now_s) {
  if (minutes_.empty() || now_s >= minutes_.back().begin_s + kMinute_s) {
    minutes_.push_back({now_s, took_s});
  }
  minutes_.back().fastest_s = std::min(minutes_.back().fastest_s, took_s);
  while (minutes_.front().begin_s < now_s - kMinutes * kMinute_s) minutes_.pop_front();
}

double PaceKeeper::fastest_s() const {
  return std::ranges::min_element(minutes_, {}, &Minute::fastest_s)->fastest_s;
}

}  // namespace motley
