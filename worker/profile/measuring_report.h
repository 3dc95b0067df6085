// MeasuringReport: reports periodically to the launcher what is being measured, how much is done
// and how long the rest will take. One owner thread.
#pragma once

#include <string>
#include <utility>

#include "protocol/launcher_channel.h"

namespace motley {

class MeasuringReport {
 public:
  // `seconds`: approximate upper limit for the whole measurement.
  MeasuringReport(LauncherChannel& channel, double seconds);

  // Starts a part, and states the share of all work that is done at its end.
  void begin(std::string what, double done_after);

  // Updates the description of the current part.
  void say(std::string what) { what_ = std::move(what); }

  // What is being measured: "block3 at 16 samples".
  [[nodiscard]] const std::string& what() const { return what_; }

  // The finished share of the current part, from 0 to 1.
  void advance(double share);

  // Reports without further progress.
  void tick() { advance(share_); }

 private:
  LauncherChannel& channel_;
  double start_s_;
  double seconds_;
  double reported_at_s_ = 0;
  std::string what_;
  double before_ = 0;  // share of all work
  double after_ = 0;
  double share_ = 0;
};

}  // namespace motley
