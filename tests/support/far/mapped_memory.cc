#include "tests/support/far/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "tests/support/far/give_up.h"

namespace motley::far {
namespace {

constexpr std::size_t kAlignment = 512;  // as on CUDA
constexpr int kPoison = 0xFF;            // a NaN in every dtype

std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

char* mapped(int file, std::size_t bytes, int protection) {
  void* const at = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED)
    give_up(std::string("its memory cannot be mapped: ") + std::strerror(errno));
  return static_cast<char*>(at);
}

}  // namespace

MappedMemory::MappedMemory(std::size_t bytes_max)
    : bytes_max_(bytes_max), reserved_(2 * bytes_max), limit_(bytes_max) {
  const int file = ::memfd_create("motley-far", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(reserved_)) != 0) {
    give_up(std::string("its memory cannot be made: ") + std::strerror(errno));
  }
  shown_ = mapped(file, reserved_, PROT_NONE);
  hidden_ = mapped(file, reserved_, PROT_READ | PROT_WRITE);
  ::close(file);
  free_[0] = reserved_;
}

char* MappedMemory::allocate(std::size_t bytes) {
  // A size that is too large to be rounded is also above the limit.
  if (bytes > limit_ || rounded(bytes) > limit_ - std::min(limit_, in_use_)) return nullptr;
  bytes = rounded(bytes);
  const auto fits = std::find_if(free_.begin(), free_.end(), [&](const auto& free_range) {
    return free_range.second >= bytes;
  });
  if (fits == free_.end()) return nullptr;
  const auto [offset, free_bytes] = *fits;
  free_.erase(fits);
  if (free_bytes > bytes) free_[offset + bytes] = free_bytes - bytes;
  if (const std::size_t end = offset + bytes; end > untouched_) {
    // Freed memory is poisoned already.
    const std::size_t begin = std::max(offset, untouched_);
    std::memset(hidden_ + begin, kPoison, end - begin);
    untouched_ = end;
  }
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  return shown_ + offset;
}

void MappedMemory::release(char* shown, std::size_t bytes) {
  bytes = rounded(bytes);
  const auto offset = static_cast<std::size_t>(shown - shown_);
  std::memset(hidden_ + offset, kPoison, bytes);
  in_use_ -= bytes;
  auto free_range = free_.emplace(offset, bytes).first;
  const auto after = std::next(free_range);
  if (after != free_.end() && free_range->first + free_range->second == after->first) {
    free_range->second += after->second;
    free_.erase(after);
  }
  if (free_range == free_.begin()) return;
  const auto before = std::prev(free_range);
  if (before->first + before->second == free_range->first) {
    before->second += free_range->second;
    free_.erase(free_range);
  }
}

bool MappedMemory::holds(const void* shown) const {
  const char* const at = static_cast<const char*>(shown);
  return at >= shown_ && at < shown_ + reserved_;
}

char* MappedMemory::hidden(const void* shown) const {
  return hidden_ + (static_cast<const char*>(shown) - shown_);
}

void MappedMemory::set_limit(std::size_t bytes) {
  limit_ = std::min(bytes, bytes_max_);
}

}  // namespace motley::far
