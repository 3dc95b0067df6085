// The differences between the versions of LibTorch that Motley is compiled with, 1.13 to 2.15. The
// program checks the version only here. For the tests' device: tests/support/far/torch_versions.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/version.h>

#define MOTLEY_TORCH_SINCE(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||      \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// Since 2.3, allocators are non-const when they allocate, and can copy.
#if MOTLEY_TORCH_SINCE(2, 3)
#define MOTLEY_ALLOCATE_CONST
#define MOTLEY_ALLOCATORS_COPY 1
#else
#define MOTLEY_ALLOCATE_CONST const
#define MOTLEY_ALLOCATORS_COPY 0
#endif

namespace motley::torch_compat {

// Type of totals reported by allocators (c10::MemoryReportingInfoBase): unsigned since 2.0.
using ReportedTotal = std::conditional_t<MOTLEY_TORCH_SINCE(2, 0), std::size_t, std::int64_t>;

// Waits until the event that was recorded on `stream` is done. Before 2.5 the host cannot wait for
// a single event, so this waits for all work submitted to the stream.
inline void wait_for_event(const c10::impl::DeviceGuardImplInterface& device,
                           [[maybe_unused]] void* event,
                           [[maybe_unused]] const c10::Stream& stream) {
#if MOTLEY_TORCH_SINCE(2, 5)
  device.synchronizeEvent(event);
#else
  device.synchronizeStream(stream);
#endif
}

// Seconds between two events, both on `stream` and done. Throws if LibTorch, before 2.6, or the
// device does not report event times.
inline double seconds_between([[maybe_unused]] const c10::impl::DeviceGuardImplInterface& device,
                              [[maybe_unused]] void* first,
                              [[maybe_unused]] void* second,
                              [[maybe_unused]] const c10::Stream& stream) {
#if MOTLEY_TORCH_SINCE(2, 6)
  constexpr double kSecondsPerMillisecond = 1e-3;
  return kSecondsPerMillisecond * device.elapsedTime(first, second, stream.device_index());
#else
  throw std::runtime_error("this LibTorch does not report the times of events");
#endif
}

}  // namespace motley::torch_compat
