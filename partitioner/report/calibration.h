// Calibration: corrects the profile for the next plan by measurements of runs. A profile measures
// layers one by one; a run measures them together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/report/planning_input.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

// Measurements of one run.
struct RunMeasurement {
  Plan plan;
  std::vector<double> busy_s;            // [Rank] computing in a step, median; 0 = unknown
  std::vector<std::int64_t> peak_bytes;  // [Rank] of the process; 0 = unknown
  double step_s = 0;                     // median; 0 = unknown
};

struct DeviceCalibration {
  std::string machine;
  std::string device;
  int rank_count = 0;  // that ran on it, over all runs
  // Median of measured over predicted; 0.2 to 5. For a rank that mostly waits, a factor below 1
  // counts only as far as the step proves it.
  double time_factor = 1;
  bool clamped = false;  // the factor was outside this range
  // Median of the times in the profile with which the runs were planned over those of the corrected
  // profile; 0 = unknown.
  double planned_with = 0;
  // Measured less predicted, the largest; never below 0: another run may need memory that one did
  // not.
  std::int64_t memory_offset_bytes = 0;
};

using Calibration = std::vector<DeviceCalibration>;

// Compares each run with the prediction of *this* profile for its plan, so that corrections learned
// earlier are not lost when the run was itself planned with them. One entry for each device that
// ran. kConfig if a run is of another model, used a machine that the cluster lacks, or computed
// with another dtype or number of threads than the next plan would. REQUIRES: the vectors of a run
// are as long as its plan's ranks.
[[nodiscard]] Result<Calibration> calibrate(const PlanningInput& input,
                                            const std::vector<RunMeasurement>& runs);

// The profile with its times multiplied and its baseline raised. Devices without an entry are
// unchanged.
[[nodiscard]] Profile calibrated(Profile profile, const Calibration& calibration);

// One line for each device.
[[nodiscard]] std::string calibration_text(const Calibration& calibration);

}  // namespace motley
