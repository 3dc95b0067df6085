#include "profiling/cache_eviction.h"

#include <algorithm>

namespace motley {
namespace {

constexpr std::size_t kLineBytes = 64;

}  // namespace

CacheEviction::CacheEviction(std::int64_t elsewhere_bytes)
    : memory_(static_cast<std::size_t>(std::clamp<std::int64_t>(elsewhere_bytes, 0, kBytesMax))) {}

void CacheEviction::run() {
  // Volatile, so that the compiler retains the accesses although their result is unused.
  volatile std::byte* memory = memory_.data();
  for (std::size_t i = 0; i < memory_.size(); i += kLineBytes) {
    memory[i] = static_cast<std::byte>(static_cast<unsigned>(memory[i]) + 1U);
  }
}

}  // namespace motley
