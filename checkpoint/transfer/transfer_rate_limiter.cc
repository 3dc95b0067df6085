#include "checkpoint/transfer/transfer_rate_limiter.h"

#include <algorithm>

namespace motley {
namespace {

constexpr double kMinute_s = 60;
constexpr double kMinutes = 10;
// A part is late if it takes this many times the fastest time, and at least this much longer.
constexpr double kLateRatio = 2;
constexpr double kLate_s = 0.002;
// Pauses after consecutive parts that met frames, as multiples of the explained delay.
constexpr double kFirstMultiple = 4;
constexpr double kLastMultiple = 32;

}  // namespace

double TransferRateLimiter::pause_after_s(const Part& part, double now_s) {
  remember(part.took_s, now_s);
  const double fastest = fastest_s();
  const bool is_late = part.took_s > kLateRatio * fastest && part.took_s > fastest + kLate_s;
  const double explained_s = std::min(part.took_s, part.frames * fastest);
  if (!is_late || explained_s < kLate_s) {
    multiple_ = 0;
    return part.took_s;
  }
  multiple_ = multiple_ == 0 ? kFirstMultiple : std::min(2 * multiple_, kLastMultiple);
  return std::max(part.took_s, std::min(multiple_ * explained_s, kLongestPause_s));
}

void TransferRateLimiter::remember(double took_s, double now_s) {
  if (minutes_.empty() || now_s >= minutes_.back().begin_s + kMinute_s) {
    minutes_.push_back({now_s, took_s});
  }
  minutes_.back().fastest_s = std::min(minutes_.back().fastest_s, took_s);
  while (minutes_.front().begin_s < now_s - kMinutes * kMinute_s) minutes_.pop_front();
}

double TransferRateLimiter::fastest_s() const {
  return std::ranges::min_element(minutes_, {}, &Minute::fastest_s)->fastest_s;
}

}  // namespace motley
