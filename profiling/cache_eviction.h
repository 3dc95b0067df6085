// CacheEviction: fills the processor's caches with other data, as the other layers of a stage do in
// a real step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley {

class CacheEviction {
 public:
  // An upper limit: memory far larger than any cache has no further effect.
  static constexpr std::int64_t kBytesMax = std::int64_t{128} << 20;

  // `elsewhere_bytes`: what the real step accesses between two executions of the layer.
  explicit CacheEviction(std::int64_t elsewhere_bytes);

  // Reads and writes that much memory.
  void run();

 private:
  std::vector<std::byte> memory_;
};

}  // namespace motley
