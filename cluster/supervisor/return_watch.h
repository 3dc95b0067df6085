// ReturnWatch: asks during a launch the machines that the run continues without, and decides when
// they are used again (cluster/supervisor/decide_return.h). It has its own thread, since a machine
// that is off does not answer for seconds, and planning takes as long.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/supervisor/decide_return.h"
#include "plan/cluster.h"

namespace motley {

class ReturnWatch {
 public:
  struct Given {
    const Cluster& cluster;                // all machines of the run
    const std::filesystem::path& program;  // motley-stage
    std::vector<AbsentMachine> absent;
    double present_step_s = 0;   // as ReturnGain
    double start_s = 0;          // as ReturnGain
    std::int64_t last_step = 0;  // of the run
    // The predicted step of a plan with these machines too. Called on the watch's thread; ends
    // early once a stop is requested.
    std::function<Result<double>(const std::vector<std::string>& returning, std::stop_token stop)>
        predict;
  };

  // All references must outlive it. kInternal if no thread can be created.
  [[nodiscard]] static Result<std::unique_ptr<ReturnWatch>> start(Given given, const Log& log);
  ~ReturnWatch();
  ReturnWatch(const ReturnWatch&) = delete;
  ReturnWatch& operator=(const ReturnWatch&) = delete;

  // To be called for each step. Returns a message for the user, once, when machines are to be used
  // again. One thread.
  [[nodiscard]] std::optional<std::string> on_step(std::int64_t step);

  // The machines to use again; empty before on_step() has returned a message. The thread of
  // on_step().
  [[nodiscard]] const std::vector<std::string>& returning() const { return returning_; }

 private:
  // The outcome of the watch's thread.
  struct Return {
    std::vector<std::string> machines;
    std::string text;
  };

  ReturnWatch(Given given, const Log& log, OwnedFd wake_reader, OwnedFd wake_writer);
  void watch(const std::stop_token& stop);
  [[nodiscard]] Result<void> ask(const std::stop_token& stop);
  // Returns whether machines are to be used again.
  [[nodiscard]] bool consider(const std::stop_token& stop);

  const Given given_;
  const Log& log_;
  const ReturnRules rules_;
  std::vector<AbsentMachine> absent_;  // used by the thread
  std::vector<std::string> declined_;  // the last ones that were not worth the move
  double declined_at_s_ = 0;
  std::atomic<std::int64_t> step_{0};
  std::mutex mutex_;
  std::optional<Return> found_;  // guarded by mutex_
  std::condition_variable_any wake_;
  std::vector<std::string> returning_;
  // A pipe whose reader is readable once the thread is to end.
  OwnedFd wake_reader_;
  OwnedFd wake_writer_;
  std::jthread thread_;
};

}  // namespace motley
