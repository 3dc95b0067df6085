#include "measure/stopwatch.h"

#include "base/clock.h"

namespace motley {

double Stopwatch::read_s() const {
  if (device_.is_host()) return thread_cpu_s();
  device_.finish();
  return now_s();
}

}  // namespace motley
