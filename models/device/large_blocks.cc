#include "models/device/large_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace motley {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

LargeBlocks::Block mapped(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
#ifdef MADV_HUGEPAGE
  // One page fault for 2 MiB instead of 512; the system may refuse.
  ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return {memory, bytes};
}

}  // namespace

LargeBlocks::~LargeBlocks() {
  release();
}

LargeBlocks::Block LargeBlocks::take(std::size_t bytes) {
  const std::size_t needed = whole_pages(bytes);
  const std::lock_guard lock(mutex_);
  Block block = take_unused(needed);
  if (block.memory == nullptr) {
    const std::size_t most = std::max(most_used_bytes_, used_bytes_ + needed);
    while (!unused_.empty() && used_bytes_ + unused_bytes_ + needed > most) unmap_oldest();
    block = mapped(needed);
    while (block.memory == nullptr && !unused_.empty()) {
      unmap_oldest();
      block = mapped(needed);
    }
  }
  used_bytes_ += block.bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  return block;
}

void LargeBlocks::give_back(const Block& block) {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= block.bytes;
  unused_bytes_ += block.bytes;
  unused_.push_back(block);
}

void LargeBlocks::release() {
  const std::lock_guard lock(mutex_);
  while (!unused_.empty()) unmap_oldest();
}

std::size_t LargeBlocks::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_ + unused_bytes_;
}

LargeBlocks::Block LargeBlocks::take_unused(std::size_t bytes) {
  constexpr std::size_t kWasted = 32;  // at most this fraction of a block is wasted
  auto best = unused_.end();
  for (auto it = unused_.begin(); it != unused_.end(); ++it) {
    if (it->bytes < bytes || it->bytes - bytes > it->bytes / kWasted) continue;
    if (best == unused_.end() || it->bytes < best->bytes) best = it;
  }
  if (best == unused_.end()) return {};
  const Block block = *best;
  unused_.erase(best);
  unused_bytes_ -= block.bytes;
  return block;
}

void LargeBlocks::unmap_oldest() {
  const Block block = unused_.front();
  unused_.erase(unused_.begin());
  unused_bytes_ -= block.bytes;
  ::munmap(block.memory, block.bytes);
}

}  // namespace motley
