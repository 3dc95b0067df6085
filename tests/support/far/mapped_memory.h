// MappedMemory: one device's memory, mapped twice. The shown addresses can be neither read nor
// written; the device computes at the hidden addresses, which map the same bytes.
//
// Threads: the caller holds a lock.
#pragma once

#include <cstddef>
#include <map>

namespace motley::far {

class MappedMemory {
 public:
  // Ends the process if the system cannot provide the memory.
  explicit MappedMemory(std::size_t bytes_max);
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  // The shown address of `bytes` bytes of NaN; nullptr if there is not enough memory.
  [[nodiscard]] char* allocate(std::size_t bytes);
  // REQUIRES: `shown` was allocated with this size.
  void release(char* shown, std::size_t bytes);

  [[nodiscard]] bool holds(const void* shown) const;
  // REQUIRES: holds(shown).
  [[nodiscard]] char* hidden(const void* shown) const;

  [[nodiscard]] std::size_t in_use() const { return in_use_; }

  [[nodiscard]] std::size_t peak() const { return peak_; }

  [[nodiscard]] std::size_t limit() const { return limit_; }

  void forget_peak() { peak_ = in_use_; }

  void set_limit(std::size_t bytes);

 private:
  const std::size_t bytes_max_;
  const std::size_t reserved_;  // twice bytes_max_, so that fragmentation does not make an
                                // allocation fail
  std::size_t limit_;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::size_t untouched_ = 0;  // nothing at or above this offset was ever allocated
  char* shown_ = nullptr;
  char* hidden_ = nullptr;
  std::map<std::size_t, std::size_t> free_;  // [offset] = bytes; no two are adjacent
};

}  // namespace motley::far
