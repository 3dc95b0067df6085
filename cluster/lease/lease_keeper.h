// LeaseKeeper: tells the workers, on a thread of its own, that their launcher is there and whether
// anyone of the group gets on.
//
// On a thread of its own, because the launcher's may be busy with a checkpoint on a slow disk for
// longer than a lease. A launcher that is stopped, or whose machine is off or cut off, renews
// nothing, and its workers end (WorkerChannel::hold_lease).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace motley {

class LeaseKeeper {
 public:
  // Calls `renew` with a line for every worker each `interval_s`, from its own thread.
  LeaseKeeper(double interval_s, std::function<void(const std::string& line)> renew);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // A worker got on: those who wait for others may go on waiting. Any thread.
  void got_on() { count_.fetch_add(1, std::memory_order_relaxed); }

  // For how long this program did not run, by what the keeping thread missed: it was stopped, or
  // its machine slept. The longest such time that is under way or ended kRecently_s ago or less; 0
  // where there was none. Any thread.
  [[nodiscard]] double absence_s() const;

  // While one lives, the launcher itself works on what the group waits for, or cannot hear how it
  // gets on: that counts as getting on, for kWorkMax_s.
  class Work {
   public:
    explicit Work(LeaseKeeper& keeper);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    LeaseKeeper& keeper_;
  };

 private:
  static constexpr double kWorkMax_s = 600;
  static constexpr double kRecently_s = 30;
  static constexpr double kAbsence_s = 3;  // shorter ones are those of a busy machine

  void keep(const std::stop_token& stop);

  const std::function<void(const std::string& line)> renew_;
  const double interval_s_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<double> works_since_s_{0};  // 0 = it does not
  // By sleepless_s().
  std::atomic<double> kept_at_s_;
  std::atomic<double> was_absent_s_{0};
  std::atomic<double> came_back_at_s_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace motley
