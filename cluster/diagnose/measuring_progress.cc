#include "cluster/diagnose/measuring_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace motley {
namespace {

constexpr double kLineInterval_s = 0.2;
constexpr double kPlainLineInterval_s = 10;

}  // namespace

MeasuringProgress::MeasuringProgress(std::vector<std::string> devices,
                                     std::function<void(const std::string&)> say,
                                     std::FILE* live)
    : say_(std::move(say)) {
  for (std::string& name : devices) devices_.push_back({.name = std::move(name)});
  if (live != nullptr) live_.emplace(live);
}

void MeasuringProgress::show(std::size_t device, Report report, double at_s) {
  devices_[device].report = std::move(report);
  draw(at_s);
}

void MeasuringProgress::done(std::size_t device, double at_s) {
  devices_[device].is_done = true;
  draw(at_s);
}

void MeasuringProgress::clear() {
  if (live_) live_->clear();
}

std::string MeasuringProgress::line() const {
  const Device* last = nullptr;
  for (const Device& device : devices_) {
    if (device.is_done || !device.report) continue;
    if (last == nullptr || device.report->left_s > last->report->left_s) last = &device;
  }
  if (last == nullptr) return "";
  const bool is_alone = devices_.size() == 1;
  return fmt::format("measuring {}{} at {:.0f} %, {}; about {:.0f} s left",
                     is_alone ? "" : fmt::format("{} devices: ", devices_.size()), last->name,
                     100 * last->report->done, last->report->what, last->report->left_s);
}

void MeasuringProgress::draw(double at_s) {
  // The first plain line is delayed: short measurements need none.
  if (!drawn_at_s_ && !live_) drawn_at_s_ = at_s;
  const double interval_s = live_ ? kLineInterval_s : kPlainLineInterval_s;
  if (drawn_at_s_ && at_s - *drawn_at_s_ < interval_s) return;
  const std::string text = line();
  if (text.empty()) return;
  drawn_at_s_ = at_s;
  if (live_) {
    live_->show(text);
  } else {
    say_(text);
  }
}

}  // namespace motley
