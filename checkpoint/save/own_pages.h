// OwnPages: memory taken from the system and given back to it whole, for what is large and short:
// the allocator of a worker keeps all that it ever had (keep_freed_memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace motley {

class OwnPages {
 public:
  // Zeros. Nothing where the system has no such memory. REQUIRES: bytes > 0.
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
