#include "base/work_counter.h"

#include <fmt/format.h>

namespace motley {

WorkCounter::Task::Task(WorkCounter& counter, const char* what, std::uint64_t bytes_total)
    : counter_(counter) {
  counter_.done_bytes_.store(0, std::memory_order_relaxed);
  counter_.total_bytes_.store(bytes_total, std::memory_order_relaxed);
  counter_.what_.store(what, std::memory_order_relaxed);
  counter_.add_one();
}

WorkCounter::Task::~Task() {
  counter_.what_.store(nullptr, std::memory_order_relaxed);
  counter_.add_one();
}

std::string WorkCounter::words() const {
  const char* const what = what_.load(std::memory_order_relaxed);
  if (what == nullptr) return {};
  constexpr double kGiga = 1e9;
  const double done_gb = static_cast<double>(done_bytes_.load(std::memory_order_relaxed)) / kGiga;
  const double all_gb = static_cast<double>(total_bytes_.load(std::memory_order_relaxed)) / kGiga;
  if (all_gb == 0) return fmt::format("{}: {:.1f} GB", what, done_gb);
  return fmt::format("{}: {:.1f} of {:.1f} GB", what, done_gb, all_gb);
}

}  // namespace motley
