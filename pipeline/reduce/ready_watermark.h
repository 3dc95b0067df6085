// ReadyWatermark: from which value on a gradient changes no more. A backward writes a chunk's
// gradient from its end to its beginning; the thread that computes it moves the mark, and the
// thread that sums it over the replicas (pipeline/reduce/gradient_reducer.h) follows.
//
// Whoever sees a set() may read what was written before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "comm/transport/pending.h"

namespace motley {

class ReadyWatermark {
 public:
  // The bell rings whenever the mark has moved. It begins where nothing is final.
  explicit ReadyWatermark(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}

  // The values [first, end) are final. REQUIRES: first does not grow within a step.
  void set(std::size_t first) {
    first_.store(first, std::memory_order_release);
    bell_->ring();
  }

  [[nodiscard]] std::size_t first() const { return first_.load(std::memory_order_acquire); }

  // The step ends without the rest.
  void abandon() {
    abandoned_.store(true, std::memory_order_release);
    bell_->ring();
  }

  [[nodiscard]] bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<Bell> bell_;
  std::atomic<std::size_t> first_ = SIZE_MAX;
  std::atomic<bool> abandoned_ = false;
};

}  // namespace motley
