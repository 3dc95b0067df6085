#include "cluster/launch/machine_questions.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "cluster/launch/worker_command.h"
#include "cluster/process/process.h"
#include "cluster/process/stop_signals.h"

namespace motley {
namespace {

constexpr std::size_t kWordsBytesMax = 1024;  // what a shell says beyond that is not kept

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// One machine that was asked.
class AskedMachine {
 public:
  explicit AskedMachine(const MachineQuestion& question) {
    Result<Process> process =
        Process::start(remote_command(question.machine->shell, question.command));
    if (!process.ok()) {
      answer_.trouble = fmt::format("{}: {}", process.error().what, process.error().cause);
      return;
    }
    process_.emplace(std::move(process).value());
    process_->input().reset();
  }

  [[nodiscard]] bool is_open() const { return process_.has_value(); }

  void watch(std::vector<pollfd>& fds) {
    fds.push_back({.fd = process_->exit_fd(), .events = POLLIN});
    for (OwnedFd* stream : {&process_->output(), &process_->errors()}) {
      if (stream->open()) fds.push_back({.fd = stream->get(), .events = POLLIN});
    }
  }

  // Takes what it says, and its end if that has come.
  void hear() {
    read_all();
    pollfd exit{.fd = process_->exit_fd(), .events = POLLIN};
    if (::poll(&exit, 1, 0) <= 0) return;
    read_all();
    const ProcessExit end = process_->reap();
    if (end.signal != 0) {
      answer_.trouble =
          fmt::format("its shell was killed by signal {} ({})", end.signal, strsignal(end.signal));
    }
    answer_.status = end.status;
    process_.reset();
  }

  void give_up(double after_s) {
    process_.reset();
    answer_.trouble = fmt::format("no answer within {:g} s", after_s);
  }

  MachineAnswer take() {
    answer_.words = last_line(std::move(errors_));
    return std::move(answer_);
  }

 private:
  void read_all() {
    read(process_->output(), answer_.said);
    read(process_->errors(), errors_);
  }

  static void read(OwnedFd& fd, std::string& into) {
    std::array<char, 4096> buffer;
    while (fd.open()) {
      const ssize_t bytes = ::read(fd.get(), buffer.data(), buffer.size());
      if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (bytes <= 0) return fd.reset();
      const std::size_t room = kWordsBytesMax - std::min(into.size(), kWordsBytesMax);
      into.append(buffer.data(), std::min(static_cast<std::size_t>(bytes), room));
    }
  }

  std::optional<Process> process_;
  std::string errors_;
  MachineAnswer answer_;
};

using AskedMachines = std::vector<std::unique_ptr<AskedMachine>>;

// Until all have answered.
Result<void> hear_all(const AskedMachines& asked, double answer_s) {
  StopSignals signals;
  const Deadline deadline = Deadline::after_s(answer_s);
  while (true) {
    std::vector<pollfd> fds = {{.fd = signals.fd(), .events = POLLIN}};
    for (const auto& machine : asked) {
      if (machine->is_open()) machine->watch(fds);
    }
    if (fds.size() == 1) return {};
    const double left_ms = std::ceil(deadline.left_s() * 1e3);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::min(left_ms, 1e9)));
    if (const std::optional<Error> stop = signals.take()) return *stop;
    for (const auto& machine : asked) {
      if (machine->is_open() && ready > 0) machine->hear();
      if (machine->is_open() && deadline.passed()) machine->give_up(answer_s);
    }
  }
}

}  // namespace

Result<std::vector<MachineAnswer>> ask_machines(const std::vector<MachineQuestion>& questions,
                                                double answer_s) {
  AskedMachines asked;
  for (const MachineQuestion& question : questions) {
    asked.push_back(std::make_unique<AskedMachine>(question));
  }
  MOTLEY_TRY(hear_all(asked, answer_s));
  std::vector<MachineAnswer> answers;
  for (const auto& machine : asked) answers.push_back(machine->take());
  return answers;
}

}  // namespace motley
