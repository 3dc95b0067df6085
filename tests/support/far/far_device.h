// The far device: an accelerator that is not there, for tests of what goes on with one that is.
//
// It registers with LibTorch as the devices "privateuseone:0", "privateuseone:1" …; what it
// computes has the same bits as on the processor, and it is strict where a real one is lucky:
//
//   - Its memory cannot be touched by the host: that ends the process with a segmentation fault.
//     New and freed memory is full of NaN.
//   - A copy that is not blocking is late. It is carried out when it has to be, and its target
//     holds NaN before. What it reads must not change meanwhile, in the host's memory neither.
//   - What two streams do with the same bytes, one of them writing, must be ordered by an event or
//   by
//     the host's waiting. Memory that another stream may be using must not be freed, unless that
//     stream was recorded. The process aborts where it is not so, and says which operations met.
//
// Events have times, as a device's own clock gives them; a device can be made slow, which the host
// does not notice before it waits, and can hang: then 1,000 operations more are taken, and who
// gives another stands still with it.
//
// Environment: MOTLEY_FAR_DEVICES (2) devices of MOTLEY_FAR_MIB (4096) MiB each, which say that
// they multiply matrices of the types MOTLEY_FAR_TYPES ("bf16 fp16") beside fp32, whose operations
// and copies take MOTLEY_FAR_OPERATION_US (0) microseconds more than they do on the processor, and
// which hang from the operation MOTLEY_FAR_HANGS_AFTER on (0: never).
// These functions may be called by any thread, also through dlsym. `device` is its index.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Since the process began, or since they were reset; of all devices.
struct MotleyFarCounters {
  uint64_t host_waits;  // for an event, a stream, a copy that blocks, a value (item())
  uint64_t copies_to_device;
  uint64_t bytes_to_device;
  uint64_t copies_from_device;
  uint64_t bytes_from_device;
  uint64_t operations;  // that computed; views and copies are none
  uint64_t questions;   // whether an event or a stream is done yet
};

void motley_far_counters(struct MotleyFarCounters* counters);
// The peaks of memory too: they begin anew with what is in use.
void motley_far_reset_counters(void);

uint64_t motley_far_bytes(int device);
uint64_t motley_far_peak_bytes(int device);
// From now on, of each device: at most what the environment said.
void motley_far_limit_memory(uint64_t bytes);

// From now on, of each operation and copy: what MOTLEY_FAR_OPERATION_US says in the beginning.
void motley_far_slow_down(double operation_s);
// Whether its allocator tells LibTorch's profiler from now on what it gives and takes back: CUDA's
// does, a Mac's does not. It does in the beginning.
void motley_far_report_memory(int reports);
// Whether all streams stand still from now on.
void motley_far_hang(int hangs);

// What the current device has free and in all; always 0, for success. The same question that
// cudaMemGetInfo answers.
int motley_device_memory(size_t* free_bytes, size_t* total_bytes);
// What a device multiplies matrices of, beside fp32.
const char* motley_device_types(int device);
const char* motley_device_model(int device);

#ifdef __cplusplus
}
#endif
