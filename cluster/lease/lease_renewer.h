// LeaseRenewer: renews the workers' leases, and reports to them whether the group makes progress.
//
// It has its own thread, because the launcher's thread may be busy with a checkpoint on a slow disk
// for longer than a lease. If the launcher is stopped, or its machine is off or cut off, no lease
// is renewed and the workers exit (WorkerChannel::start_lease).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace motley {

class LeaseRenewer {
 public:
  // Calls `renew` every `interval_s` from its own thread, with a line to send to every worker.
  // least_absence_s: shorter ones end no lease and do not count.
  LeaseRenewer(double interval_s,
               double least_absence_s,
               std::function<void(const std::string& line)> renew);
  ~LeaseRenewer();
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;

  // Records that a worker made progress, which extends the waits of the others. Any thread.
  void note_progress_made() { count_.fetch_add(1, std::memory_order_relaxed); }

  // The time for which the launcher did not run, measured by missed renewals: it was stopped, or
  // its machine slept. The longest such time that is under way or ended at most kRecently_s ago; 0
  // if there was none. Any thread.
  [[nodiscard]] double absence_s() const;

  // While one exists, the launcher itself does work that the group waits for, or cannot read the
  // workers' progress. That counts as progress, for at most kWorkMax_s.
  class Work {
   public:
    explicit Work(LeaseRenewer& renewer);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    LeaseRenewer& renewer_;
  };

 private:
  static constexpr double kWorkMax_s = 600;
  static constexpr double kRecently_s = 30;

  void renew_periodically(const std::stop_token& stop);

  const std::function<void(const std::string& line)> renew_;
  const double interval_s_;
  const double least_absence_s_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<double> works_since_s_{0};  // 0 = no Work exists
  // Times of sleepless_s().
  std::atomic<double> renewed_at_s_;
  std::atomic<double> was_absent_s_{0};
  std::atomic<double> came_back_at_s_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace motley
