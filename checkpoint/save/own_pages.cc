#include "checkpoint/save/own_pages.h"

#include <sys/mman.h>

#include <utility>

namespace motley {

std::optional<OwnPages> OwnPages::of(std::uint64_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return {};
#ifdef MADV_HUGEPAGE
  // One fault per 2 MiB instead of 512; the system may refuse.
  ::madvise(at, bytes, MADV_HUGEPAGE);
#endif
  return OwnPages({static_cast<std::byte*>(at), bytes});
}

OwnPages::OwnPages(OwnPages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

OwnPages& OwnPages::operator=(OwnPages&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

OwnPages::~OwnPages() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace motley
