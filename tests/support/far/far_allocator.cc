#include "tests/support/far/far_allocator.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include <c10/util/Exception.h>

#include "tests/support/far/far_state.h"
#include "tests/support/far/here.h"
#include "tests/support/far/torch_versions.h"

namespace motley::far {
namespace {

std::atomic<bool> reports = true;

// `bytes` is negative for a release.
void report(void* shown, std::int64_t bytes, int device) {
  if (!reports) return;
  const auto in_use = static_cast<std::int64_t>(FarState::get().bytes_in_use(device));
  c10::reportMemoryUsageToProfiler(shown, bytes, in_use, in_use, torch_device(device));
}

void free_far(void* shown) {
  FarState& state = FarState::get();
  const int device = state.device_of(shown);
  report(shown, -static_cast<std::int64_t>(state.release(shown)), device);
}

std::string mib(std::size_t bytes) {
  return std::to_string(bytes >> 20U) + " MiB";
}

class FarAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) MOTLEY_ALLOCATE_CONST override {
    const int device = current_device();
    if (bytes == 0) return {nullptr, torch_device(device)};
    FarState& state = FarState::get();
    void* const shown = state.allocate(device, bytes, current_stream(device));
    if (shown == nullptr) {
      C10_THROW_ERROR(OutOfMemoryError,
                      "far device out of memory. Tried to allocate " + mib(bytes) + " on device " +
                          std::to_string(device) + ", which has " + mib(state.bytes_limit(device)) +
                          " in all, " + mib(state.bytes_in_use(device)) + " of it in use");
    }
    report(shown, static_cast<std::int64_t>(bytes), device);
    return {shown, shown, &free_far, torch_device(device)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_far; }

#if MOTLEY_ALLOCATORS_COPY
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    FarState& state = FarState::get();
    std::memcpy(state.hidden(target), state.hidden(source), bytes);
  }
#endif
};

FarAllocator the_allocator;  // NOLINT

const c10::AllocatorRegisterer<c10::DeviceType::PrivateUse1> registered(&the_allocator);

}  // namespace

c10::Allocator* far_allocator() {
  return &the_allocator;
}

void report_memory(bool are_reported) {
  reports = are_reported;
}

}  // namespace motley::far
