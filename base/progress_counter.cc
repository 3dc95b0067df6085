#include "base/progress_counter.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley {

std::string progress_text(std::string_view what, const ProgressBytes& bytes) {
  if (bytes.done == 0 && bytes.total == 0) return std::string(what);
  constexpr std::uint64_t kGiga = 1'000'000'000;
  const bool is_large = std::max(bytes.done, bytes.total) >= kGiga;
  const double unit = is_large ? 1e9 : 1e6;
  std::string text = fmt::format("{}: {:.1f}", what, static_cast<double>(bytes.done) / unit);
  if (bytes.total > 0) text += fmt::format(" of {:.1f}", static_cast<double>(bytes.total) / unit);
  return text + (is_large ? " GB" : " MB");
}

ProgressCounter::Task::Task(ProgressCounter& counter, const char* what, std::uint64_t bytes_total)
    : counter_(counter) {
  counter_.done_bytes_.store(0, std::memory_order_relaxed);
  counter_.total_bytes_.store(bytes_total, std::memory_order_relaxed);
  counter_.what_.store(what, std::memory_order_relaxed);
  counter_.add_one();
}

ProgressCounter::Task::~Task() {
  counter_.what_.store(nullptr, std::memory_order_relaxed);
  counter_.add_one();
}

std::string ProgressCounter::words() const {
  const char* const what = what_.load(std::memory_order_relaxed);
  return what == nullptr ? std::string() : progress_text(what, bytes());
}

ProgressBytes ProgressCounter::bytes() const {
  if (what_.load(std::memory_order_relaxed) == nullptr) return {};
  return {done_bytes_.load(std::memory_order_relaxed),
          total_bytes_.load(std::memory_order_relaxed)};
}

}  // namespace motley
