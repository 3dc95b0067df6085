#include "profiling/sizes_that_fit.h"

#include "profiling/cache_eviction.h"

namespace motley {

bool fits_memory(const std::vector<LayerSample>& measured, int samples, std::int64_t free_bytes) {
  if (measured.empty()) return true;
  const LayerSample expected = interpolate(measured, samples);
  const std::int64_t tensor_bytes = expected.saved_bytes + expected.workspace_bytes;
  return tensor_bytes <= (free_bytes - CacheEviction::kBytesMax) / 2;
}

}  // namespace motley
