// What LibTorch 2 requires of an accelerator in addition to its streams (device_guard.cc), above
// all pinned host memory: here ordinary memory, whose addresses are recorded.
#include "tests/support/far/torch_versions.h"

#if MOTLEY_FAR_HAS_HOOKS

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>

#include "tests/support/far/far_state.h"
#include "tests/support/far/here.h"

namespace motley::far {
namespace {

class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    constexpr std::size_t kAlignment = 64;
    if (bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, rounded);
    TORCH_CHECK(memory != nullptr, "the host is out of memory for ", bytes, " pinned bytes");
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<const char*>(memory)] = bytes;
    return {memory, memory, &PinnedMemory::free, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &PinnedMemory::free; }

  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }

  [[nodiscard]] bool holds(const void* at) {
    const std::lock_guard lock(mutex_);
    const char* const byte = static_cast<const char*>(at);
    const auto after = blocks_.upper_bound(byte);
    if (after == blocks_.begin()) return false;
    const auto block = std::prev(after);
    return byte < block->first + block->second;
  }

  static PinnedMemory& get() {
    static PinnedMemory* const memory = new PinnedMemory();
    return *memory;
  }

 private:
  static void free(void* memory) {
    const std::lock_guard lock(get().mutex_);
    get().blocks_.erase(static_cast<const char*>(memory));
    std::free(memory);
  }

  std::mutex mutex_;
  std::map<const char*, std::size_t> blocks_;
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }

  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(FarState::get().devices());
  }

  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device());
  }

  void setCurrentDevice(c10::DeviceIndex device) const override { use_device(device); }

  c10::Device getDeviceFromPtr(void* shown) const override {
    return torch_device(FarState::get().device_of(shown));
  }

  bool isPinnedPtr(const void* at) const override { return PinnedMemory::get().holds(at); }

  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::get(); }
#if MOTLEY_TORCH_SINCE(2, 8)
  bool isBuilt() const override {
    return true;
  }

  bool isAvailable() const override {
    return true;
  }
#endif
};

const bool registered = [] {
  // Autograd and pinned memory treat only a renamed kind as an accelerator.
  c10::register_privateuse1_backend("privateuseone");
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  return true;
}();

}  // namespace
}  // namespace motley::far

#endif
