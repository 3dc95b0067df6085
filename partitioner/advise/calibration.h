// Calibration: what runs have shown, turned into corrections of the profile that the next plan is
// made from. A profile measures layers one by one; a run shows what they take together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/advise/planning_input.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

// What one run measured of its plan.
struct RunMeasurement {
  Plan plan;
  std::vector<double> busy_s;            // [Rank] computing in a step, median; 0 = unknown
  std::vector<std::int64_t> peak_bytes;  // [Rank] of the process; 0 = unknown
  double step_s = 0;                     // median; 0 = unknown
};

struct DeviceCalibration {
  std::string machine;
  std::string device;
  int rank_count = 0;  // of all runs together, that ran on it
  // Measured over predicted, the median; 0.2 to 5. Of a rank that mostly waits, or waits and has a
  // limited share of a core, a factor below 1 counts only as far as the step proves it.
  double time_factor = 1;
  bool clamped = false;  // the factor lay outside
  // The times of the profile that the runs were planned with over those of the one that is
  // corrected, the median; 0 = unknown.
  double planned_with = 0;
  // Measured less predicted, the largest; never below 0: what one run did not need another may.
  std::int64_t memory_offset_bytes = 0;
};

using Calibration = std::vector<DeviceCalibration>;

// Compares each run with what *this* profile predicts for its plan, so that learning from a run
// that was itself planned with something learned does not forget it. One entry a device that ran.
// kConfig when a run is of another model, used a machine that the cluster lacks, or computed in
// other numbers or with another number of threads than the next plan would.
// REQUIRES: the vectors of a run are as long as its plan's ranks.
[[nodiscard]] Result<Calibration> calibrate(const PlanningInput& input,
                                            const std::vector<RunMeasurement>& runs);

// The profile with its times multiplied and its baseline raised. Devices without an entry stay.
[[nodiscard]] Profile calibrated(Profile profile, const Calibration& calibration);

// One line a device.
[[nodiscard]] std::string calibration_text(const Calibration& calibration);

}  // namespace motley
