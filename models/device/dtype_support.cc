#include "models/device/dtype_support.h"

#include "models/device/kinds/device_queries.h"

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
  const DeviceKind& kind = device.kind();
  const DeviceQueries& queries = queries_of(kind.library);
  return queries.computes_products_in != nullptr
             ? queries.computes_products_in(device.torch().index(), type)
             : names_dtype(kind.product_dtypes, type);
}

}  // namespace motley
