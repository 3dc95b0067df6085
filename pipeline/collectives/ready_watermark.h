// ReadyWatermark: the index from which on the values of a gradient are final. A backward writes a
// chunk's gradient from its end to its beginning. The compute thread moves the watermark; the
// thread that all-reduces the gradient (pipeline/collectives/gradient_reducer.h) reads it.
//
// Thread-safe. first() synchronises with set(): a thread that reads a watermark may read the values
// written before it was set.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "comm/transport/pending.h"

namespace motley {

class ReadyWatermark {
 public:
  // Notifies after each set() and abandon(). At first no value is final.
  explicit ReadyWatermark(std::shared_ptr<Notifier> notifier) : notifier_(std::move(notifier)) {}

  // The values [first, end) are final. REQUIRES: first does not grow within a step.
  void set(std::size_t first) {
    first_.store(first, std::memory_order_release);
    notifier_->notify();
  }

  [[nodiscard]] std::size_t first() const { return first_.load(std::memory_order_acquire); }

  // The step ends early: no further values become final.
  void abandon() {
    abandoned_.store(true, std::memory_order_release);
    notifier_->notify();
  }

  [[nodiscard]] bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<Notifier> notifier_;
  std::atomic<std::size_t> first_ = SIZE_MAX;
  std::atomic<bool> abandoned_ = false;
};

}  // namespace motley
