#include "partitioner/report/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/median.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/report/scaled_profile.h"
#include "partitioner/search/simulate_plan.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr double kLeastFactor = 0.2;
constexpr double kMostFactor = 5;
// A device that mostly waits may compute faster than it could continuously, because it is cool.
// Below this share of the step a higher speed is not believed.
constexpr double kBusyShareMin = 0.5;

// The profile's prediction for one rank of a run.
struct Prediction {
  double busy_s = 0;
  std::int64_t memory_bytes = 0;
};

// All observations on one device.
struct Observations {
  std::vector<double> factors;
  std::vector<double> planned_with;
  std::int64_t memory_offset_bytes = 0;
  int rank_count = 0;
};

// Times measured with another dtype or number of threads do not apply to the next plan.
Result<void> check_computing(const Plan& plan,
                             const CostModel& cost,
                             const std::vector<int>& slots) {
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const DeviceSlot& slot = cost.slots()[static_cast<std::size_t>(slots[r])];
    if (const std::string& compute_dtype = plan.ranks[r].compute_dtype;
        compute_dtype != slot.compute_dtype) {
      return Error{ErrorCode::kConfig, "cannot calibrate with a run in another precision",
                   fmt::format("{}/{} computed in {} there, and would compute in {} now",
                               slot.machine, slot.device, compute_dtype, slot.compute_dtype),
                   "use --set train.precision with that run's value and profiles of it; or give "
                   "another run"};
    }
    const int threads = plan.ranks[r].threads;
    if (threads == slot.threads) continue;
    return Error{
        ErrorCode::kConfig, "cannot calibrate with a run with other numbers of threads",
        fmt::format("{}/{} computed with {} there, and would compute with {} now", slot.machine,
                    slot.device, threads, slot.threads),
        fmt::format("use --set run.threads={} with profiles of it; or give another run", threads)};
  }
  return {};
}

Result<std::vector<Prediction>> predict(const PlanningInput& input, const Plan& plan) {
  const PlanOptions& options = input.options;
  MOTLEY_ASSIGN(const SimulatedPlan simulated,
                simulate_plan(plan, input.model, input.cluster, input.profile, options));
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(input.model, input.cluster, input.profile, options.default_threads,
                                process_state_of(options, plan), plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  MOTLEY_TRY(check_computing(plan, cost, slots));
  // The executor encodes and decodes on the compute stream, and reports both as one time.
  std::vector<Prediction> predictions;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    predictions.push_back({cost.single_device_factor_of(slots) *
                               (simulated.step.compute_s[r] + simulated.step.codec_s[r]),
                           simulated.memory[r].bytes()});
  }
  return predictions;
}

Result<void> check_run(const PlanningInput& input, const RunMeasurement& run) {
  const Plan& plan = run.plan;
  MOTLEY_CHECK(run.busy_s.size() == plan.ranks.size() && run.peak_bytes.size() == plan.ranks.size(),
               "{} and {} measurements of {} ranks", run.busy_s.size(), run.peak_bytes.size(),
               plan.ranks.size());
  if (plan.model_hash == input.model.hash()) return {};
  return Error{ErrorCode::kConfig, "cannot calibrate with a run of another model",
               "its layers or sizes differ from those of [model] in the configuration",
               "give a run of this model"};
}

// Measured over predicted. If a device is not believed to be fast, the factor is limited by the
// step: the device did its work within the step, with or without waits.
double believed_factor(double measured_s, double predicted_s, double step_s) {
  const double factor = measured_s / predicted_s;
  if (measured_s >= kBusyShareMin * step_s) return factor;
  return std::max(factor, std::min(1.0, step_s / predicted_s));
}

// Explains why the run's report states another factor than the learned one. Two measurements of one
// device differ by less.
std::string other_base_text(const DeviceCalibration& device) {
  constexpr double kSameProfile = 0.15;
  if (device.planned_with <= 0 || std::abs(device.planned_with - 1) < kSameProfile) return "";
  return fmt::format(
      "note      the run on {}/{} was planned with another profile, with times x {:.2f} of this "
      "one's\n",
      device.machine, device.device, device.planned_with);
}

}  // namespace

Result<Calibration> calibrate(const PlanningInput& input, const std::vector<RunMeasurement>& runs) {
  std::map<std::pair<std::string, std::string>, Observations> seen;
  for (const RunMeasurement& run : runs) {
    MOTLEY_TRY(check_run(input, run));
    MOTLEY_ASSIGN(const std::vector<Prediction> predictions, predict(input, run.plan));
    for (std::size_t r = 0; r < predictions.size(); ++r) {
      const RankPlan& rank = run.plan.ranks[r];
      const auto& [busy_s, memory_bytes] = predictions[r];
      Observations& device = seen[{rank.machine, rank.device}];
      ++device.rank_count;
      if (run.busy_s[r] > 0 && busy_s > 0) {
        device.factors.push_back(believed_factor(run.busy_s[r], busy_s, run.step_s));
        if (rank.compute_s > 0) device.planned_with.push_back(rank.compute_s / busy_s);
      }
      if (run.peak_bytes[r] > 0) {
        device.memory_offset_bytes =
            std::max(device.memory_offset_bytes, run.peak_bytes[r] - memory_bytes);
      }
    }
  }
  Calibration calibration;
  for (const auto& [name, device] : seen) {
    const double factor = device.factors.empty() ? 1 : median(device.factors);
    const double bounded = std::clamp(factor, kLeastFactor, kMostFactor);
    const double planned_with = device.planned_with.empty() ? 0 : median(device.planned_with);
    calibration.push_back({name.first, name.second, device.rank_count, bounded, bounded != factor,
                           planned_with, device.memory_offset_bytes});
  }
  return calibration;
}

Profile calibrated(Profile profile, const Calibration& calibration) {
  for (DeviceProfile& device : profile.devices) {
    const auto learned = std::find_if(calibration.begin(), calibration.end(), [&](const auto& d) {
      return d.machine == device.machine && d.device == device.device;
    });
    if (learned == calibration.end()) continue;
    device = with_times_scaled(std::move(device), learned->time_factor);
    device.baseline_bytes += learned->memory_offset_bytes;
  }
  return profile;
}

std::string calibration_text(const Calibration& calibration) {
  std::string text;
  for (const DeviceCalibration& device : calibration) {
    const auto more = static_cast<double>(device.memory_offset_bytes);
    text += fmt::format("learned   {}/{}: times x {:.2f}{}{} (from {} rank{})\n", device.machine,
                        device.device, device.time_factor, device.clamped ? " (the limit)" : "",
                        more > 0 ? fmt::format(", {} more memory", bytes_text(more)) : "",
                        device.rank_count, device.rank_count == 1 ? "" : "s");
    text += other_base_text(device);
  }
  return text;
}

}  // namespace motley
