#include "worker/profile/device_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/system/system_cores.h"
#include "base/system/system_memory.h"
#include "models/device/product_type.h"
#include "models/device/tensor_memory.h"
#include "profiling/cache/profile_store.h"
#include "profiling/codec_bench.h"
#include "profiling/impossible_memory.h"
#include "profiling/measurement_lock.h"
#include "simulated/virtual_compute.h"
#include "worker/check/profile_key.h"
#include "worker/profile/device_bench.h"

namespace motley {
namespace {

// The memory of a stage's process beyond this process and its layers: connections, threads and
// their malloc arenas. Chosen from measured runs (docs/planning.md).
constexpr std::int64_t kStageBytes = std::int64_t{16} << 20;

// A quota is enforced in periods of up to a tenth of a second; a shorter sample would not show the
// share.
constexpr double kSample_s = 1.5;
// The tolerated deviation from a stored profile, besides noise.
constexpr double kSampleTolerance = 0.15;
// Noise beyond this is not tolerated: such a measurement, or a file that claims it, says little
// about the device.
constexpr double kNoiseMax = 1;
// A smaller gain from running alone is ignored.
constexpr double kAloneTolerance = 0.05;
constexpr double kLockWait_s = 300;  // timeout for other measurements on this computer

std::vector<std::string> codecs_to_measure(const Job& job) {
  return chains_to_measure(job.config.compression, job.options.value("all_codecs", false));
}

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

// Profiles a real device.
class DeviceProfiler {
 public:
  DeviceProfiler(const Job& job,
                 const ModelSpec& model,
                 const std::vector<int>& sizes,
                 MeasuringReport& report,
                 const ComputeDevice& computes)
      : job_(job),
        model_(model),
        sizes_(sizes),
        store_(profile_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"))),
        key_(profile_key(job, model, computes)),
        lock_(store_.path_of(key_).parent_path()),
        report_(report),
        computes_(computes),
        bench_(job, model, sizes, report_, computes) {
    clear();
  }

  // Times in the result are wall-clock seconds.
  Result<DeviceProfile> profile() {
    const double start_s = now_s();
    lock_.lock_shared_for(kLockWait_s, [&] { report_.tick(); });
    recall();
    MOTLEY_TRY(bench_.add_codecs(codecs_to_measure(job_), device_));
    if (bench_.lacks_layers(device_)) {
      bench_.add_layers(device_, job_.config.profile.seconds - (now_s() - start_s));
      if (!together_)
        together_ = DeviceBench::Sample{.seconds_per_cpu_second = bench_.seconds_per_cpu_second()};
    }
    if (device_.baseline_bytes == 0) {
      // At the end, when the libraries have loaded their code and allocated their buffers.
      release_tensor_memory();
      // A device's own context is already excluded from its free memory.
      device_.baseline_bytes = (computes_.is_host() ? resident_bytes() : 0) + kStageBytes;
    }
    keep();
    if (job_.options.value("company", false)) device_.single_device_factor = single_device_factor();
    device_.scale_times(together_->seconds_per_cpu_second);
    device_.cores = std::min<double>(physical_cores(), usable_cores());
    if (job_.cpu_share > 0) device_.cores = std::min(device_.cores, job_.cpu_share);
    return std::move(device_);
  }

  // Whether nothing had to be measured.
  [[nodiscard]] bool was_stored() const { return was_stored_; }

 private:
  // Loads the stored profile if it is still valid.
  void recall() {
    if (job_.options.value("measure", false)) return;
    ProfileStore::Found found = store_.find(key_);
    if (!found.problem.empty()) say("cached profile not used: " + found.problem);
    if (!found.profile || !serves(*found.profile, sizes_, job_.config.profile.seconds)) return;
    if (const auto wrong = impossible_memory(found.profile->device, model_)) {
      return say(
          fmt::format("cached profile not used: {}: {}", store_.path_of(key_).string(), *wrong));
    }
    recalled_ = *std::move(found.profile);
    const std::string machine = std::exchange(device_, recalled_->device).machine;
    device_.machine = machine;                              // its name may have changed
    device_.rounded_bytes_per_parameter = rounded_bytes();  // packages have none
    device_.warnings.clear();                               // of the earlier measurement
    const auto is_kept = [&](const LayerSpec& layer) {
      return device_.layers.contains(layer.signature);
    };
    if (std::ranges::none_of(model_.layers, is_kept)) return;
    report_.begin("check of the cached profile", 0.01);
    together_ = bench_.sample(device_, kSample_s);
    // Repeated, because the deviation may be due to a burst of other load.
    if (is_off(*together_)) together_ = bench_.sample(device_, kSample_s);
    was_stored_ = !is_off(*together_);
    if (was_stored_) return;
    say(fmt::format("a layer takes {:.2f} times as long as in the cached profile: measuring again",
                    together_->ratio));
    clear();
    recalled_.reset();
    together_.reset();
  }

  void clear() {
    device_ = {};
    device_.machine = job_.options.value("machine", "");
    device_.device = job_.device;
    device_.threads = job_.threads;
    device_.precision = key_.compute_dtype;
    device_.rounded_bytes_per_parameter = rounded_bytes();
  }

  // Packages round the operands of each product instead of storing a rounded copy of the
  // parameters.
  [[nodiscard]] int rounded_bytes() const {
    const at::ScalarType products = product_type(computes_, job_.config.train.precision);
    if (products == at::kFloat || model_.package != nullptr) return 0;
    return static_cast<int>(c10::elementSize(products));
  }

  static bool is_off(const DeviceBench::Sample& sample) {
    // A profile without times has no ratio and counts as off.
    const double tolerance = kSampleTolerance + std::min(kNoiseMax, sample.noise);
    return !(std::abs(std::log(sample.ratio)) <= std::log1p(tolerance));
  }

  // Stores new measurements. If only codecs or other values were added to the stored layers, the
  // extent stays that of the stored profile.
  void keep() {
    StoredProfile now{job_.config.profile.seconds, sizes_.front(), sizes_.back(), device_};
    if (recalled_ && recalled_->device.layers.size() == device_.layers.size()) {
      if (recalled_->device.codecs.size() == device_.codecs.size()) return;
      now = *recalled_;
      now.device = device_;
    }
    was_stored_ = false;
    if (!store_.keeps()) say("the profile is not cached: neither HOME nor XDG_CACHE_HOME is set");
    const Result<void> kept = store_.put(key_, now);
    if (!kept.ok()) {
      say(fmt::format("the profile is not cached: {}: {}; set XDG_CACHE_HOME to another folder",
                      kept.error().what, kept.error().cause));
    }
  }

  // The time of the device alone, divided by its time beside the other devices of its computer. The
  // devices are measured one after another.
  double single_device_factor() {
    report_.begin("the speed of the device alone", 1);
    if (!lock_.lock_exclusive_for(kLockWait_s, [&] { report_.tick(); })) return 1;
    const DeviceBench::Sample alone = bench_.sample(device_, kSample_s);
    const double factor = alone.ratio * alone.seconds_per_cpu_second /
                          (together_->ratio * together_->seconds_per_cpu_second);
    return factor < 1 - kAloneTolerance ? factor : 1;
  }

  const Job& job_;
  const ModelSpec& model_;
  const std::vector<int>& sizes_;
  ProfileStore store_;
  ProfileKey key_;
  MeasurementLock lock_;
  MeasuringReport& report_;
  const ComputeDevice computes_;
  DeviceBench bench_;
  DeviceProfile device_;
  std::optional<StoredProfile> recalled_;        // the stored profile, if it is still valid
  std::optional<DeviceBench::Sample> together_;  // beside the other devices
  bool was_stored_ = false;
};

// Layer times follow from the cluster file; messages between stages are encoded by this processor.
Result<DeviceProfile> profile_virtual(const Job& job,
                                      const ModelSpec& model,
                                      const std::vector<int>& sizes,
                                      MeasuringReport& report) {
  VirtualJob training = virtual_job(job.config.train, model);
  training.product_bytes = job.options.value("product_bytes", training.product_bytes);
  training.rounds_intermediates = job.options.value("rounds_intermediates", false);
  DeviceProfile device = virtual_profile(model, *job.virtual_speed, training, sizes);
  DeviceBench bench(job, model, sizes, report);
  MOTLEY_TRY(bench.add_codecs(codecs_to_measure(job), device));
  release_tensor_memory();
  device.baseline_bytes = resident_bytes() + kStageBytes;
  device.machine = job.options.value("machine", "");
  device.device = job.device;
  device.threads = job.threads;
  return device;
}

}  // namespace

Result<MeasuredDevice> measure_device(const Job& job,
                                      const ModelSpec& model,
                                      const std::vector<int>& sizes,
                                      MeasuringReport& report,
                                      const ComputeDevice& computes) {
  MeasuredDevice measured;
  if (capabilities_of(job.device).is_measured) {
    DeviceProfiler profiler(job, model, sizes, report, computes);
    MOTLEY_ASSIGN(measured.device, profiler.profile());
    measured.was_stored = profiler.was_stored();
  } else {
    MOTLEY_ASSIGN(measured.device, profile_virtual(job, model, sizes, report));
  }
  // The stored value describes the machine; in this run ranks may send all values instead.
  if (!job.options.value("shares_memory", false)) measured.device.shared_s_per_float = 0;
  return measured;
}

}  // namespace motley
