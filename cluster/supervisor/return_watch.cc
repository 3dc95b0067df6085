#include "cluster/supervisor/return_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/system/blocked_signals.h"
#include "cluster/launch/reachability.h"

namespace motley {
namespace {

// Together they bound the time in which a machine that is back is found.
constexpr double kAnswer_s = 5;
constexpr double kBetweenQueries_s = 3;
// After this time, machines whose return did not pay are considered again.
constexpr double kDeclined_s = 600;

std::string answers_text(const std::vector<std::string>& machines) {
  return fmt::format("{} answer{} again", fmt::join(machines, ", "),
                     machines.size() == 1 ? "s" : "");
}

}  // namespace

Result<std::unique_ptr<ReturnWatch>> ReturnWatch::start(Given given, const Log& log) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kInternal, "cannot make a pipe", std::strerror(errno), ""};
  }
  std::unique_ptr<ReturnWatch> watch(
      new ReturnWatch(std::move(given), log, OwnedFd(ends[0]), OwnedFd(ends[1])));
  const BlockedSignals blocked;  // signals are handled by the launcher's main thread
  try {
    watch->thread_ =
        std::jthread([&self = *watch](const std::stop_token& stop) { self.watch(stop); });
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kInternal, "no thread to ask machines", error.what(), ""};
  }
  return watch;
}

ReturnWatch::ReturnWatch(Given given, const Log& log, OwnedFd wake_reader, OwnedFd wake_writer)
    : given_(std::move(given)),
      log_(log),
      absent_(given_.absent),
      wake_reader_(std::move(wake_reader)),
      wake_writer_(std::move(wake_writer)) {}

ReturnWatch::~ReturnWatch() {
  thread_.request_stop();
  [[maybe_unused]] const ssize_t woken = ::write(wake_writer_.get(), "", 1);
}

std::optional<std::string> ReturnWatch::on_step(std::int64_t step) {
  step_.store(step);
  if (!returning_.empty()) return {};
  const std::lock_guard lock(mutex_);
  if (!found_) return {};
  returning_ = std::move(found_->machines);
  return std::move(found_->text);
}

void ReturnWatch::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!ask(stop).ok() || consider(stop)) return;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, std::chrono::duration<double>(kBetweenQueries_s),
                   [] { return false; });
  }
}

Result<void> ReturnWatch::ask(const std::stop_token& stop) {
  std::set<std::string> machines;
  for (const AbsentMachine& each : absent_) machines.insert(each.machine);
  const auto stopped = [&stop]() -> std::optional<Error> {
    if (!stop.stop_requested()) return {};
    return Error{ErrorCode::kInterrupted, "the launch has ended", "", ""};
  };
  MOTLEY_ASSIGN(const auto unusable, find_unusable(given_.cluster, machines, given_.program,
                                                   kAnswer_s, {wake_reader_.get(), stopped}));
  for (AbsentMachine& each : absent_) {
    if (unusable.contains(each.machine)) {
      each.answers_since_s.reset();
    } else if (!each.answers_since_s) {
      each.answers_since_s = now_s();
    }
  }
  return {};
}

bool ReturnWatch::consider(const std::stop_token& stop) {
  const std::vector<std::string> machines = returnable(now_s(), absent_, rules_);
  const bool is_declined = machines == declined_ && now_s() - declined_at_s_ < kDeclined_s;
  if (machines.empty() || is_declined) return false;
  const Result<double> step_s = given_.predict(machines, stop);
  const ReturnGain gain{.present_step_s = given_.present_step_s,
                        .step_s = step_s.ok() ? *step_s : given_.present_step_s,
                        .start_s = given_.start_s,
                        .steps_left = given_.last_step - step_.load()};
  if (step_s.ok() && pays(gain, rules_)) {
    const std::string text = fmt::format(
        "{}: used again after the current step is saved; {:.3f} s a step predicted, instead of "
        "{:.3f} s",
        answers_text(machines), gain.step_s, gain.present_step_s);
    const std::lock_guard lock(mutex_);
    found_ = {machines, text};
    return true;
  }
  declined_ = machines;
  declined_at_s_ = now_s();
  log_.info(fmt::format(
      "{}; the run continues without: {}", answers_text(machines),
      step_s.ok()
          ? fmt::format("{:.3f} s a step predicted with, {:.3f} s without, and a move takes "
                        "{:.1f} s",
                        gain.step_s, gain.present_step_s, gain.start_s)
          : fmt::format("{}: {}", step_s.error().what, step_s.error().cause)));
  return false;
}

}  // namespace motley
