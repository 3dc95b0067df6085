// DeviceBench: measures what a profile of this worker's device lacks, within a time limit.
//
// All times are a Stopwatch's; on the processor, its seconds. A process that shares its cores or
// has a quota gets fewer processor seconds per second: that rate is averaged over everything
// measured.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "profiling/layers/layer_bench.h"
#include "profiling/layers/stopwatch.h"
#include "protocol/protocol.h"
#include "worker/profile/measuring_report.h"

namespace motley {

class DeviceBench {
 public:
  // References must outlive it. `sizes` are ascending.
  DeviceBench(const Job& job,
              const ModelSpec& model,
              const std::vector<int>& sizes,
              MeasuringReport& report,
              const ComputeDevice& device = {});

  // Whether the profile lacks layers or the optimizer.
  [[nodiscard]] bool lacks_layers(const DeviceProfile& device) const;
  // Adds the missing kinds of layers, and the optimizer, in about `seconds`.
  void add_layers(DeviceProfile& device, double seconds);
  // Adds the missing codecs, and the cost of a message.
  [[nodiscard]] Result<void> add_codecs(const std::vector<std::string>& chains,
                                        DeviceProfile& device);

  struct Sample {
    double ratio = 1;                   // time now / time in the profile
    double seconds_per_cpu_second = 1;  // wall-clock time per processor time of this process
    double noise = 0;                   // relative uncertainty of the ratio
  };

  // Measures one layer of the profile again, in about `seconds`. REQUIRES: the profile has layers
  // of this model.
  [[nodiscard]] Sample sample(const DeviceProfile& device, double seconds);

  // Over all layers measured so far; 1 if there were none.
  [[nodiscard]] double seconds_per_cpu_second() const;

 private:
  // One layer of each kind, in the model's order.
  [[nodiscard]] std::vector<int> kinds() const;
  // At each size for which there is memory and time.
  [[nodiscard]] std::vector<LayerBench::Measured> measure_kind(int layer, double seconds);
  // Measures the sizes of all kinds again, small ones first, while time remains.
  void measure_again(std::map<int, std::vector<LayerBench::Measured>>& measured, double until_s);
  [[nodiscard]] std::int64_t free_bytes() const;           // in the memory where tensors are
  [[nodiscard]] const std::string& name(int layer) const;  // for display
  [[nodiscard]] const std::string& signature(int layer) const;

  const Job& job_;
  const ModelSpec& model_;
  const std::vector<int>& sizes_;
  MeasuringReport& report_;
  const ComputeDevice device_;
  Stopwatch watch_;
  double wall_s_ = 0;
  double watch_s_ = 0;
};

}  // namespace motley
