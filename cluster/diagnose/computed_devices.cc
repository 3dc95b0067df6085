#include "cluster/diagnose/computed_devices.h"

#include "partitioner/cost/virtual_profile.h"
#include "plan/cluster/virtual_numbers.h"
#include "plan/units.h"
#include "run_config/optimizers.h"
#include "training/optimizer/parameter_rules.h"

namespace motley {

bool are_started_alike(const Machine& one, const Machine& other) {
  return one.shell == other.shell && one.motley_dir == other.motley_dir &&
         one.threads == other.threads && one.cpu_share == other.cpu_share;
}

DeviceProfile computed_part(const Machine& machine,
                            const std::string& device,
                            const ModelSpec& model,
                            const TrainConfig& train,
                            const std::vector<int>& sizes) {
  const VirtualNumbers numbers = virtual_numbers(machine, train.precision);
  const VirtualJob job{train.global_batch, moments_per_parameter(train),
                       matrix_flops_per_parameter(train, model), product_bytes(numbers),
                       numbers.rounds_intermediates};
  DeviceProfile profile = virtual_profile(model, numbers.speed, job, sizes);
  profile.compute_dtype = numbers.compute_dtype;
  profile.machine = machine.name;
  profile.device = device;
  profile.memory_bytes = static_cast<std::int64_t>(machine.memory_gib * kBytesPerGib);
  return profile;
}

DeviceProfile with_measured_part(DeviceProfile computed, const DeviceProfile& measured) {
  computed.threads = measured.threads;
  computed.baseline_bytes = measured.baseline_bytes;
  computed.precision = measured.precision;
  computed.codecs = measured.codecs;
  computed.message_s = measured.message_s;
  computed.shared_s_per_float = measured.shared_s_per_float;
  return computed;
}

}  // namespace motley
