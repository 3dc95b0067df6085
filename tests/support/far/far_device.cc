#include "tests/support/far/far_device.h"

#include <cstdlib>

#include "tests/support/far/far_allocator.h"
#include "tests/support/far/far_state.h"
#include "tests/support/far/here.h"

using motley::far::FarState;

void motley_far_counters(MotleyFarCounters* counters) {
  *counters = FarState::get().counters();
}

void motley_far_reset_counters() {
  FarState::get().reset_counters();
}

uint64_t motley_far_bytes(int device) {
  return FarState::get().bytes_in_use(device);
}

uint64_t motley_far_peak_bytes(int device) {
  return FarState::get().bytes_peak(device);
}

void motley_far_limit_memory(uint64_t bytes) {
  FarState::get().limit_memory(bytes);
}

void motley_far_slow_down(double operation_s) {
  FarState::get().set_operation_s(operation_s);
}

void motley_far_report_memory(int reports) {
  motley::far::report_memory(reports != 0);
}

void motley_far_hang(int hangs) {
  FarState::get().hang(hangs != 0);
}

int motley_device_memory(size_t* free_bytes, size_t* total_bytes) {
  const int device = motley::far::current_device();
  FarState& state = FarState::get();
  const size_t in_use = state.bytes_in_use(device);
  *total_bytes = state.bytes_limit(device);
  *free_bytes = *total_bytes > in_use ? *total_bytes - in_use : 0;
  return 0;
}

const char* motley_device_types(int /*device*/) {
  const char* const types = std::getenv("MOTLEY_FAR_TYPES");
  return types == nullptr ? "bf16 fp16" : types;
}

const char* motley_device_model(int /*device*/) {
  return "far device";
}
