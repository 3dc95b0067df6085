#include "base/work_counter.h"

#include <fmt/format.h>

#include <algorithm>

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
  constexpr std::uint64_t kGiga = 1'000'000'000;
  const std::uint64_t done_bytes = done_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t total_bytes = total_bytes_.load(std::memory_order_relaxed);
  const bool is_large = std::max(done_bytes, total_bytes) >= kGiga;
  const double unit = is_large ? 1e9 : 1e6;
  std::string words = fmt::format("{}: {:.1f}", what, static_cast<double>(done_bytes) / unit);
  if (total_bytes > 0) words += fmt::format(" of {:.1f}", static_cast<double>(total_bytes) / unit);
  return words + (is_large ? " GB" : " MB");
}

}  // namespace motley
