#include "plan/cluster/virtual_numbers.h"

#include "base/check.h"
#include "plan/cluster/device_models.h"
#include "plan/plan.h"

namespace motley {

VirtualNumbers virtual_numbers(const Machine& machine, const std::string& precision) {
  const DeviceModel* const model = find_device_model(machine.device_model);
  MOTLEY_CHECK(machine.virtual_speed || model != nullptr, "{} has no simulated device",
               machine.name);
  VirtualNumbers numbers;
  const bool is_rounded =
      precision != kFp32Dtype && (model == nullptr || computes_in(*model, precision));
  numbers.compute_dtype = is_rounded ? precision : kFp32Dtype;
  numbers.rounds_intermediates =
      is_rounded && (model == nullptr || rounds_intermediates(*model, precision));
  if (machine.virtual_speed) {
    numbers.speed = *machine.virtual_speed;
  } else {
    numbers.speed.gflops = is_rounded ? model->half_gflops : model->gflops;
  }
  return numbers;
}

int product_bytes(const VirtualNumbers& numbers) {
  return numbers.compute_dtype == kFp32Dtype ? 4 : 2;
}

}  // namespace motley
