#include "training/sizes_with_room.h"

namespace motley {

bool has_room(const std::vector<LayerSample>& measured, int samples, std::int64_t free_bytes) {
  if (measured.empty()) return true;
  const LayerSample expected = interpolate(measured, samples);
  return expected.saved_bytes + expected.workspace_bytes <= free_bytes / 2;
}

}  // namespace motley
