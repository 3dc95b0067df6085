// CacheEviction: makes the processor's caches hold something else, as they do in a real step when
// the rest of a stage's layers has run since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley {

class CacheEviction {
 public:
  // `elsewhere_bytes`: what the real step touches between two visits. Memory far larger than any
  // cache has no further effect, so less of it is used.
  explicit CacheEviction(std::int64_t elsewhere_bytes);

  // Reads and writes that much memory.
  void run();

 private:
  std::vector<std::byte> memory_;
};

}  // namespace motley
