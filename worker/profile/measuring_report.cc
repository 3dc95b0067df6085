#include "worker/profile/measuring_report.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/json.h"

namespace motley {
namespace {

constexpr double kReportInterval_s = 0.5;
constexpr double kEstimableShare = 0.1;  // from this share on the remaining time can be estimated

}  // namespace

MeasuringReport::MeasuringReport(LauncherChannel& channel, double seconds)
    : channel_(channel), start_s_(now_s()), seconds_(seconds) {}

void MeasuringReport::begin(std::string what, double done_after) {
  before_ = after_;
  after_ = std::clamp(done_after, before_, 1.0);
  what_ = std::move(what);
  advance(0);
}

void MeasuringReport::advance(double share) {
  share_ = std::clamp(share, 0.0, 1.0);
  const double at_s = now_s();
  if (at_s - reported_at_s_ < kReportInterval_s) return;
  reported_at_s_ = at_s;
  const double took_s = at_s - start_s_;
  const double done = before_ + share_ * (after_ - before_);
  double left_s = std::max(0.0, seconds_ - took_s);
  if (done >= kEstimableShare) left_s = std::min(left_s, took_s * (1 - done) / done);
  channel_.send({{"event", "measuring"}, {"what", what_}, {"done", done}, {"left_s", left_s}});
}

}  // namespace motley
