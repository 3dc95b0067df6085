#include "profiling/profile_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace motley {
namespace {

// A quarter in one layer at one size is a few percent of a step; on two quiet cores the times of a
// small model's layer spread by up to a fifth.
constexpr double kSpreadMax = 0.25;
constexpr double kDriftMax = 0.2;
constexpr double kWeighty = 0.05;  // of the slowest kind's time at the same size

struct Noise {
  double share = 0;  // spread over median
  const char* direction = "";
  int samples = 0;
};

void keep_worst(Noise& worst, const char* direction, int samples, double time_s, double spread_s) {
  if (spread_s > worst.share * time_s) worst = {spread_s / time_s, direction, samples};
}

double total_s(const LayerSample& sample) {
  return sample.forward_s + sample.backward_s;
}

}  // namespace

std::vector<std::string> noise_warnings(const DeviceProfile& device) {
  std::map<int, double> slowest_s;  // by size
  for (const auto& [signature, samples] : device.layers) {
    for (const LayerSample& s : samples) {
      slowest_s[s.micro_batch] = std::max(slowest_s[s.micro_batch], total_s(s));
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [signature, samples] : device.layers) {
    Noise worst;
    for (const LayerSample& s : samples) {
      if (total_s(s) < kWeighty * slowest_s[s.micro_batch]) continue;
      keep_worst(worst, "forward", s.micro_batch, s.forward_s, s.forward_spread_s);
      keep_worst(worst, "backward", s.micro_batch, s.backward_s, s.backward_spread_s);
    }
    if (worst.share <= kSpreadMax) continue;
    warnings.push_back(fmt::format("noisy: the spread of {} of {} at {} sample{} is {:.0f} %",
                                   worst.direction, signature, worst.samples,
                                   worst.samples == 1 ? "" : "s", 100 * worst.share));
  }
  return warnings;
}

std::string drift_warning(const LayerSample& before, const LayerSample& after) {
  const double first_s = total_s(before);
  const double last_s = total_s(after);
  if (std::abs(first_s - last_s) <= kDriftMax * std::min(first_s, last_s)) return "";
  return fmt::format(
      "the machine changed speed during profiling: {:.3f} ms, then {:.3f} ms; check for other "
      "programs and throttling",
      1e3 * first_s, 1e3 * last_s);
}

}  // namespace motley
