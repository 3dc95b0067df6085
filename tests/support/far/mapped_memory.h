// MappedMemory: one device's memory, mapped twice. At the addresses that are shown nothing may be
// read or written; behind them lie hidden ones of the same bytes, where the device computes.
//
// Threads: the caller's lock.
#pragma once

#include <cstddef>
#include <map>

namespace motley::far {

class MappedMemory {
 public:
  // Ends the process where the system does not give the memory.
  explicit MappedMemory(std::size_t bytes_max);
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  // The shown address of so many bytes of NaN; nullptr where no room is left.
  [[nodiscard]] char* allocate(std::size_t bytes);
  // REQUIRES: allocated, with as many bytes.
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
  const std::size_t reserved_;  // twice as much, so that no memory is lost between what is in use
  std::size_t limit_;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::size_t untouched_ = 0;  // from here on nothing was ever allocated
  char* shown_ = nullptr;
  char* hidden_ = nullptr;
  std::map<std::size_t, std::size_t> free_;  // [offset] = bytes; no two of them touch
};

}  // namespace motley::far
