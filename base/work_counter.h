// WorkCounter: how far a process is, counted where work is done and read by the thread that tells
// the launcher. It only moves when something was finished (bytes that were read, written or
// computed, an action), so a process that stands still cannot look busy. Lock-free, any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace motley {

class WorkCounter {
 public:
  // While it lives, the counter's words are `what` and how many of `bytes_total` are done (0 =
  // their number is unknown). One at a time. REQUIRES: `what` is a literal.
  class Task {
   public:
    Task(WorkCounter& counter, const char* what, std::uint64_t bytes_total);
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

   private:
    WorkCounter& counter_;
  };

  // Something was finished.
  void add_one() { count_.fetch_add(1, std::memory_order_relaxed); }

  // So many bytes of the task were finished.
  void add_bytes(std::uint64_t bytes) {
    done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    add_one();
  }

  // Never falls; equal readings mean that nothing was finished between them.
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

  // "loading parameters: 3.2 of 20.1 GB"; empty without a task.
  [[nodiscard]] std::string words() const;

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<const char*> what_{nullptr};
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<std::uint64_t> total_bytes_{0};
};

}  // namespace motley
