#include "models/device/tensor_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "base/system/system_memory.h"
#include "models/device/large_blocks.h"
#include "models/device/torch_compat.h"

namespace motley {
namespace {

// For vector instructions and cache lines.
constexpr std::size_t kAlignment = 64;

// Stored right before the tensor's memory: its allocation by malloc, or its large block.
struct Origin {
  void* memory = nullptr;
  std::size_t block_bytes = 0;  // 0: from malloc
};

// malloc aligns to it, so an Origin fits before the returned memory.
static_assert(alignof(std::max_align_t) >= sizeof(Origin));

Origin& origin_of(void* memory) {
  return *(static_cast<Origin*>(memory) - 1);
}

void* aligned_within(void* allocated) {
  const auto address = reinterpret_cast<std::uintptr_t>(allocated);
  return static_cast<char*>(allocated) + (kAlignment - address % kAlignment);
}

// Never destroyed: tensors may outlive the destructors at the end of a process.
LargeBlocks& large_blocks() {
  static auto* const blocks = new LargeBlocks;
  return *blocks;
}

// Allocates `bytes` bytes and the space before them.
Origin allocate_with_origin(std::size_t bytes) {
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() - kAlignment;
  if (bytes > kMost) return {};
  if (bytes < LargeBlocks::kLeastBytes) return {std::malloc(bytes + kAlignment)};
  const LargeBlocks::Block block = large_blocks().take(bytes + kAlignment);
  return {block.memory, block.bytes};
}

void free_tensor(void* memory) {
  if (memory == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(memory);
  const Origin origin = origin_of(memory);
  if (origin.block_bytes == 0) {
    std::free(origin.memory);
  } else {
    large_blocks().give_back({origin.memory, origin.block_bytes});
  }
}

class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) MOTLEY_ALLOCATE_CONST override {
    if (bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
    const Origin origin = allocate_with_origin(bytes);
    if (origin.memory == nullptr) {
      c10::profiledCPUMemoryReporter().OutOfMemory(bytes);
      C10_THROW_ERROR(OutOfMemoryError,
                      "cannot allocate memory: " + std::to_string(bytes) + " bytes requested");
    }
    void* const memory = aligned_within(origin.memory);
    origin_of(memory) = origin;
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &free_tensor, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_tensor; }

#if MOTLEY_ALLOCATORS_COPY
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
#endif
};

}  // namespace

void release_tensor_memory() {
  large_blocks().release();
  release_freed_memory();
}

void reuse_tensor_memory() {
  // Never destroyed, as large_blocks().
  static auto* const allocator = new TensorAllocator;
  c10::SetCPUAllocator(allocator);
}

}  // namespace motley
