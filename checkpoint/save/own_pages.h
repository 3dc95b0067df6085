// OwnPages: memory mapped from the system and unmapped as a whole, for large temporary arrays. The
// allocator of a worker would retain it (keep_freed_memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace motley {

class OwnPages {
 public:
  // Zeroed memory. nullopt if the system has none. REQUIRES: bytes > 0.
  [[nodiscard]] static std::optional<OwnPages> of(std::uint64_t bytes);
  OwnPages(OwnPages&& other) noexcept;
  OwnPages& operator=(OwnPages&& other) noexcept;
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;
  ~OwnPages();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit OwnPages(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace motley
