// ProgressCounter: the progress of a process, advanced where work is done and read by the thread
// that reports to the launcher. It advances only when something was finished (bytes read, written
// or computed, an action), so a stalled process cannot look busy. Lock-free, any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace motley {

// The progress of a task. total = 0: unknown.
struct ProgressBytes {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

// "loading parameters: 3.2 of 20.1 GB".
[[nodiscard]] std::string progress_text(std::string_view what, const ProgressBytes& bytes);

class ProgressCounter {
 public:
  ProgressCounter() = default;

  // A counter for work outside the task of `whole`, which only counts that something was finished.
  // `whole` must outlive it.
  explicit ProgressCounter(ProgressCounter& whole) : whole_(&whole) {}

  // While it exists, words() returns `what` with the number of the `bytes_total` that are done (0 =
  // unknown total). One at a time. REQUIRES: `what` is a literal.
  class Task {
   public:
    Task(ProgressCounter& counter, const char* what, std::uint64_t bytes_total);
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

   private:
    ProgressCounter& counter_;
  };

  // Something was finished.
  void add_one() {
    count_.fetch_add(1, std::memory_order_relaxed);
    if (whole_ != nullptr) whole_->add_one();
  }

  // `bytes` more of the task were finished.
  void add_bytes(std::uint64_t bytes) {
    done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    add_one();
  }

  // Never decreases; equal readings mean that nothing was finished between them.
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

  // "loading parameters: 3.2 of 20.1 GB"; empty without a task.
  [[nodiscard]] std::string words() const;
  // The same as byte counts; 0 of 0 without a task.
  [[nodiscard]] ProgressBytes bytes() const;

 private:
  ProgressCounter* const whole_ = nullptr;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<const char*> what_{nullptr};
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<std::uint64_t> total_bytes_{0};
};

}  // namespace motley
