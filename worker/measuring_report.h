// MeasuringReport: tells the launcher, now and then, what is being measured, how much of all is
// done and how long the rest will take. One owner thread.
#pragma once

#include <string>
#include <utility>

#include "protocol/launcher_channel.h"

namespace motley {

class MeasuringReport {
 public:
  // All takes about `seconds` at the most.
  MeasuringReport(LauncherChannel& channel, double seconds);

  // What follows, and which share of all work will be done after it.
  void begin(std::string what, double done_after);

  // What of it comes now, in other words.
  void say(std::string what) { what_ = std::move(what); }

  // What is being measured: "block3 at 16 samples".
  [[nodiscard]] const std::string& what() const { return what_; }

  // So much of it is done, from 0 to 1.
  void advance(double share);

  // Still at it.
  void tick() { advance(share_); }

 private:
  LauncherChannel& channel_;
  double start_s_;
  double seconds_;
  double told_at_s_ = 0;
  std::string what_;
  double before_ = 0;  // of all work
  double after_ = 0;
  double share_ = 0;
};

}  // namespace motley
