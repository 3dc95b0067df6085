// Activity: a rank's current action, written by the compute thread at every action, and the amount
// of finished work. Read by the thread that sends heartbeats. Lock-free.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/progress_counter.h"
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
    work_.add_one();  // the previous action is finished
  }

  // Between schedules: at startup, while saving, at the end.
  void clear(std::int64_t step) {
    packed_.store(static_cast<std::uint64_t>(step) << 40, std::memory_order_relaxed);
  }

  // While an instance exists, the compute thread waits for other ranks.
  class Waiting {
   public:
    explicit Waiting(Activity& activity) : activity_(activity) { activity_.waits_.store(true); }

    ~Waiting() { activity_.waits_.store(false); }

    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Activity& activity_;
  };

  // Whether an action is under way that waits for no other rank.
  [[nodiscard]] bool computes() const {
    return (packed_.load(std::memory_order_relaxed) & 0x3F) != 0 && !waits_.load();
  }

  // All work that this process has finished, actions included. Any thread may add to it.
  [[nodiscard]] ProgressCounter& work() { return work_; }

  [[nodiscard]] std::int64_t step() const {
    return static_cast<std::int64_t>(packed_.load(std::memory_order_relaxed) >> 40);
  }

  // "forward of micro-batch 3"; "work between steps" if no action is under way.
  [[nodiscard]] std::string words() const {
    const std::uint64_t packed = packed_.load(std::memory_order_relaxed);
    if ((packed & 0x3F) == 0) return "work between steps";
    return to_words(Action{static_cast<ActionKind>((packed & 0x3F) - 1),
                           ChunkId{static_cast<std::int32_t>((packed >> 26) & 0x3FFF)},
                           MicroId{static_cast<std::int32_t>((packed >> 6) & 0xFFFFF)}});
  }

 private:
  ProgressCounter work_;
  std::atomic<bool> waits_{false};
  std::atomic<std::uint64_t> packed_{0};  // step:24 | chunk:14 | micro:20 | kind + 1:6
};

}  // namespace motley
