// Content hashes against accidents (not against attackers): XXH3, whose output is a stable format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace motley {

[[nodiscard]] std::uint64_t hash64(std::span<const std::byte> bytes);
[[nodiscard]] std::uint64_t hash64(std::string_view text);

// A 128-bit hash as 32 lower-case hexadecimal digits (canonical XXH3-128).
[[nodiscard]] std::string hash128_hex(std::span<const std::byte> bytes);

// The same over a sequence of pieces, equal to the hash of their concatenation.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  [[nodiscard]] std::string hex() const;

 private:
  void* state_;  // XXH3_state_t, not exposed in this header
};

}  // namespace motley
