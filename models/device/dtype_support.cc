#include "models/device/dtype_support.h"

#include "models/device/kinds/device_kinds.h"

namespace motley {
namespace {

// Processors with AMX for bf16 have these instructions too.
bool processor_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace

bool computes_products_in(const ComputeDevice& device, at::ScalarType type) {
  if (type == at::kFloat) return true;
  if (type != at::kBFloat16 && type != at::kHalf) return false;
  if (device.is_host()) return type == at::kBFloat16 && processor_has_bf16();
  const DeviceKind* const kind = device_kind_of(device.torch().type());
  return kind != nullptr && kind->computes_products_in != nullptr &&
         kind->computes_products_in(device.torch().index(), type);
}

}  // namespace motley
