#include "base/clock.h"

#include <ctime>

namespace motley {

namespace {

double read_clock_s(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double thread_cpu_s() {
  return read_clock_s(CLOCK_THREAD_CPUTIME_ID);
}

double process_cpu_s() {
  return read_clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace motley
