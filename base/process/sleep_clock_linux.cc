#include <time.h>

#include "base/process/sleep_clock.h"

namespace motley {

double sleepless_s() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace motley
