#include "models/device/tensor_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "models/device/torch_compat.h"

namespace motley {
namespace {

// Of vector instructions and lines of the cache.
constexpr std::size_t kAlignment = 64;
// malloc aligns to it, so that at least as much lies before what is handed out.
static_assert(alignof(std::max_align_t) >= sizeof(void*));

// What malloc gave stands right before the tensor's memory.
void*& allocated_of(void* memory) {
  return *(static_cast<void**>(memory) - 1);
}

void* aligned_within(void* allocated) {
  const auto address = reinterpret_cast<std::uintptr_t>(allocated);
  return static_cast<char*>(allocated) + (kAlignment - address % kAlignment);
}

void free_tensor(void* memory) {
  if (memory == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(memory);
  std::free(allocated_of(memory));
}

class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) MOTLEY_ALLOCATE_CONST override {
    constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() - kAlignment;
    if (bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
    void* const allocated = bytes <= kMost ? std::malloc(bytes + kAlignment) : nullptr;
    if (allocated == nullptr) {
      c10::profiledCPUMemoryReporter().OutOfMemory(bytes);
      C10_THROW_ERROR(OutOfMemoryError,
                      "cannot allocate memory: " + std::to_string(bytes) + " bytes were asked for");
    }
    void* const memory = aligned_within(allocated);
    allocated_of(memory) = allocated;
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

void reuse_tensor_memory() {
  // Tensors may outlive all that is destroyed at the end of a process.
  static auto* const allocator = new TensorAllocator;
  c10::SetCPUAllocator(allocator);
}

}  // namespace motley
