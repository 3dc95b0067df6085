// Activity: what a rank is doing right now, written by the compute thread at every action and read
// by the thread that sends signs of life, with how much work was done. Lock-free.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/work_counter.h"
#include "pipeline/schedule/action.h"

namespace motley {

class Activity {
 public:
  void set(std::int64_t step, const Action& action) {
    packed_.store((static_cast<std::uint64_t>(step) << 40) |
                      (static_cast<std::uint64_t>(action.chunk.value & 0x3FFF) << 26) |
                      (static_cast<std::uint64_t>(action.micro.value & 0xFFFFF) << 6) |
                      (static_cast<std::uint64_t>(action.kind) + 1),
                  std::memory_order_relaxed);
    work_.add_one();  // what was under way before is finished
  }

  // Between schedules: starting, saving, ending.
  void clear(std::int64_t step) {
    packed_.store(static_cast<std::uint64_t>(step) << 40, std::memory_order_relaxed);
  }

  // While one lives, the compute thread waits for others of the group.
  class Waiting {
   public:
    explicit Waiting(Activity& activity) : activity_(activity) { activity_.waits_.store(true); }

    ~Waiting() { activity_.waits_.store(false); }

    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Activity& activity_;
  };

  // Whether an action is under way that waits for nobody.
  [[nodiscard]] bool computes() const {
    return (packed_.load(std::memory_order_relaxed) & 0x3F) != 0 && !waits_.load();
  }

  // Everything that this process has finished, actions included. Any thread adds to it.
  [[nodiscard]] WorkCounter& work() { return work_; }

  [[nodiscard]] std::int64_t step() const {
    return static_cast<std::int64_t>(packed_.load(std::memory_order_relaxed) >> 40);
  }

  // "forward of micro-batch 3"; "work between steps" when no action is under way.
  [[nodiscard]] std::string words() const {
    const std::uint64_t packed = packed_.load(std::memory_order_relaxed);
    if ((packed & 0x3F) == 0) return "work between steps";
    return to_words(Action{static_cast<ActionKind>((packed & 0x3F) - 1),
                           ChunkId{static_cast<std::int32_t>((packed >> 26) & 0x3FFF)},
                           MicroId{static_cast<std::int32_t>((packed >> 6) & 0xFFFFF)}});
  }

 private:
  WorkCounter work_;
  std::atomic<bool> waits_{false};
  std::atomic<std::uint64_t> packed_{0};  // step:24 | chunk:14 | micro:20 | kind + 1:6
};

}  // namespace motley
