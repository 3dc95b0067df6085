// The far device: an emulated accelerator, for tests of the code that runs on accelerators.
//
// It registers with LibTorch as the devices "privateuseone:0", "privateuseone:1" …; its results
// have the same bits as on the processor. It is strict where a real device may hide an error:
//
//   - The host cannot access its memory: an access ends the process with a segmentation fault.
//     New and freed memory is full of NaN.
//   - A non-blocking copy is executed as late as possible, and its target holds NaN before.
//     Its source must not change meanwhile, in the host's memory neither.
//   - Accesses of two streams to the same bytes, one of them a write, must be ordered by an event
//     or by a wait of the host. Memory that another stream may be using must not be freed, unless
//     that stream was recorded. A violation aborts the process and names both operations.
//
// Events have times, as of a device's own clock. A device can be slowed down, which the host
// notices only when it waits. A device can hang: it accepts 1,000 more operations, and a thread
// that submits another one blocks.
//
// Environment: MOTLEY_FAR_DEVICES (2) devices of MOTLEY_FAR_MIB (4096) MiB each, which report
// matrix products in the dtypes MOTLEY_FAR_TYPES ("bf16 fp16") in addition to fp32. Their
// operations and copies take MOTLEY_FAR_OPERATION_US (0) microseconds longer than on the
// processor. They hang from the operation MOTLEY_FAR_HANGS_AFTER on (0: never). These functions
// may be called by any thread, also through dlsym. `device` is its index.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Counted since the start of the process or the last reset; over all devices.
struct MotleyFarCounters {
  uint64_t host_waits;  // for an event, a stream, a blocking copy or a value (item())
  uint64_t copies_to_device;
  uint64_t bytes_to_device;
  uint64_t copies_from_device;
  uint64_t bytes_from_device;
  uint64_t operations;  // computing operations, without views and copies
  uint64_t questions;   // queries whether an event or a stream is done
};

void motley_far_counters(struct MotleyFarCounters* counters);
// Also resets the memory peaks, to the bytes in use.
void motley_far_reset_counters(void);

uint64_t motley_far_bytes(int device);
uint64_t motley_far_peak_bytes(int device);
// Limits the memory of each device from now on; at most to the size that the environment sets.
void motley_far_limit_memory(uint64_t bytes);

// Sets the additional time of each operation and copy from now on; initially
// MOTLEY_FAR_OPERATION_US.
void motley_far_slow_down(double operation_s);
// Sets whether the allocator reports allocations and releases to LibTorch's profiler: CUDA's does,
// a Mac's does not. Initially on.
void motley_far_report_memory(int reports);
// Sets whether all streams hang from now on.
void motley_far_hang(int hangs);

// Free and total memory of the current device, as from cudaMemGetInfo. Always returns 0, for
// success.
int motley_device_memory(size_t* free_bytes, size_t* total_bytes);
// The dtypes of the device's matrix products, in addition to fp32.
const char* motley_device_types(int device);
const char* motley_device_model(int device);

#ifdef __cplusplus
}
#endif
