#include "compression/kernels/non_temporal.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace motley {

#if defined(__x86_64__)

// Uses instructions of the baseline target: the four stores of a line become one write.
void copy_non_temporal(std::span<const std::byte> from_B, std::byte* to) {
  constexpr std::size_t kLineBytes = 64;
  const auto place = reinterpret_cast<std::uintptr_t>(to);
  const std::size_t before =
      std::min((kLineBytes - place % kLineBytes) % kLineBytes, from_B.size());
  std::memcpy(to, from_B.data(), before);
  const std::byte* from = from_B.data() + before;
  to += before;
  std::size_t left = from_B.size() - before;
  for (; left >= kLineBytes; left -= kLineBytes, from += kLineBytes, to += kLineBytes) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    for (int part = 0; part < 4; ++part) {
      _mm_stream_si128(target + part, _mm_loadu_si128(source + part));
    }
  }
  std::memcpy(to, from, left);
}

void fence_non_temporal() {
  _mm_sfence();
}

#else

void copy_non_temporal(std::span<const std::byte> from_B, std::byte* to) {
  if (!from_B.empty()) std::memcpy(to, from_B.data(), from_B.size());
}

void fence_non_temporal() {}

#endif

}  // namespace motley
