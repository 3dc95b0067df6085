// DeviceBench: measures what a profile of this worker's device lacks, within a time.
//
// All times are a Stopwatch's: of the processor, its seconds. One that shares its cores, or may use
// only a part of one, gives fewer of them per second: that rate is taken over all that was
// measured.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/layer_bench.h"
#include "measure/stopwatch.h"
#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "protocol/protocol.h"
#include "worker/measuring_report.h"

namespace motley {

class DeviceBench {
 public:
  // What is lent must outlive it. `sizes` ascend.
  DeviceBench(const Job& job,
              const ModelSpec& model,
              const std::vector<int>& sizes,
              MeasuringReport& report,
              const ComputeDevice& device = {});

  // Whether anything is missing in the device's layers and optimizer.
  [[nodiscard]] bool lacks_layers(const DeviceProfile& device) const;
  // Adds the kinds of layers that are missing, and the optimizer, in about `seconds`.
  void add_layers(DeviceProfile& device, double seconds);
  // Adds the codecs that are missing, and what a message costs.
  [[nodiscard]] Result<void> add_codecs(const std::vector<std::string>& chains,
                                        DeviceProfile& device);

  struct Sample {
    double ratio = 1;                   // of the time now to the time in the profile
    double seconds_per_cpu_second = 1;  // that this process was given meanwhile
    double noise = 0;                   // share by which the ratio may be off by chance
  };

  // How long a layer of the profile takes now, in about `seconds`. REQUIRES: the profile has layers
  // of this model.
  [[nodiscard]] Sample sample(const DeviceProfile& device, double seconds);

  // Of all layers that were measured so far; 1 where that was nothing.
  [[nodiscard]] double seconds_per_cpu_second() const;

 private:
  // A layer of each kind, in the order of the model.
  [[nodiscard]] std::vector<int> kinds() const;
  // At each size that there is room and time for.
  [[nodiscard]] std::vector<LayerBench::Measured> measure_kind(int layer, double seconds);
  // The sizes of all kinds at another moment, small ones first, as far as the time goes.
  void measure_again(std::map<int, std::vector<LayerBench::Measured>>& measured, double until_s);
  [[nodiscard]] std::int64_t free_bytes() const;           // where tensors lie
  [[nodiscard]] const std::string& name(int layer) const;  // for people
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
