// CacheEviction: makes the processor's caches hold something else, as they do in a real step when
// the rest of a stage's layers has run since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley {

class CacheEviction {
 public:
  // Memory far larger than any cache has no further effect, so no more than this is used.
  static constexpr std::int64_t kBytesMax = std::int64_t{128} << 20;

  // `elsewhere_bytes`: what the real step touches between two visits.
  explicit CacheEviction(std::int64_t elsewhere_bytes);

  // Reads and writes that much memory.
  void run();

 private:
  std::vector<std::byte> memory_;
};

}  // namespace motley
