// MeasuringProgress: the progress of profiling a cluster, for the user: a live line on a terminal,
// else an occasional line of the log.
//
//   measuring 3 devices: m3 (cpu) at 45 %, gpt2.mlp(512) at 4 samples; about 25 s left
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process/status_line.h"

namespace motley {

// One owner thread. Times are monotonic seconds, passed in.
class MeasuringProgress {
 public:
  struct Report {
    std::string what;
    double done = 0;  // fraction of the device's measurements
    double left_s = 0;
  };

  // `live`: a live terminal, which outlives it; nullptr = lines go to `say`.
  MeasuringProgress(std::vector<std::string> devices,
                    std::function<void(const std::string&)> say,
                    std::FILE* live);

  // Stores a device's reported progress.
  void show(std::size_t device, Report report, double at_s);
  void done(std::size_t device, double at_s);
  // Erases a live line.
  void clear();

 private:
  // For the device that will take longest.
  [[nodiscard]] std::string line() const;
  void draw(double at_s);

  struct Device {
    std::string name;
    std::optional<Report> report = {};
    bool is_done = false;
  };

  std::vector<Device> devices_;
  std::function<void(const std::string&)> say_;
  std::optional<StatusLine> live_;
  std::optional<double> drawn_at_s_;
};

}  // namespace motley
