#include "cluster/launch/machine_queries.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/process/process.h"
#include "base/process/stop_signals.h"
#include "base/secret.h"
#include "cluster/launch/worker_command.h"
#include "cluster/reach/framed_output.h"
#include "plan/cluster/joined_shell.h"

namespace motley {
namespace {

constexpr std::size_t kWordsBytesMax = 1024;
constexpr std::size_t kMarkerBytes = 8;
constexpr int kNotAnswered = 255;  // by a joined machine, as by ssh

// One machine with its running command.
class QueriedMachine {
 public:
  QueriedMachine(const MachineQuery& question, const std::string& marker)
      : marker_(marker),
        is_joined_(joined_shell(question.machine->shell).has_value()),
        frame_(marker) {
    if (is_joined_ && question.order.empty()) {
      answer_.problem = "a machine that has joined by ticket runs no shell";
      return;
    }
    Result<Process> process = Process::start(
        remote_command(question.machine->shell,
                       is_joined_ ? question.order : framed_command(question.command, marker)));
    if (!process.ok()) {
      answer_.problem = fmt::format("{}: {}", process.error().what, process.error().cause);
      return;
    }
    process_.emplace(std::move(process).value());
    process_->input().reset();
    // No shell is involved that could add to the output, so the frame is made here.
    if (is_joined_) frame_.add_output(fmt::format("\n{}-begin\n", marker_));
  }

  [[nodiscard]] bool is_open() const { return process_.has_value(); }

  void watch(std::vector<pollfd>& fds) {
    fds.push_back({.fd = process_->exit_fd(), .events = POLLIN});
    for (OwnedFd* stream : {&process_->output(), &process_->errors()}) {
      if (stream->open()) fds.push_back({.fd = stream->get(), .events = POLLIN});
    }
  }

  // Reads the available output, and the exit status once it has arrived. The answer ends with the
  // frame: processes that the shell left running may hold the connection open for long.
  void hear() {
    read_all();
    if (frame_.status()) return process_.reset();
    pollfd exit{.fd = process_->exit_fd(), .events = POLLIN};
    if (::poll(&exit, 1, 0) <= 0) return;
    read_all();
    const ProcessExit end = process_->reap();
    if (is_joined_ && end.signal == 0 && end.status != kNotAnswered) {
      frame_.add_output(fmt::format("\n{}-end {}\n", marker_, end.status));
    }
    if (!frame_.status()) answer_.problem = problem_of(end);
    process_.reset();
  }

  void give_up(double after_s) {
    process_.reset();
    answer_.problem = fmt::format("no answer within {:g} s", after_s);
  }

  MachineResponse take() {
    answer_.words = excerpt(frame_.last_error_line(), kWordsBytesMax);
    if (frame_.status()) {
      answer_.status = *frame_.status();
      answer_.said = frame_.said();
    }
    return std::move(answer_);
  }

 private:
  // Why the shell ended before the command completed.
  [[nodiscard]] std::string problem_of(const ProcessExit& end) const {
    if (is_joined_) return "no answer from it";
    if (end.signal != 0) {
      return fmt::format("its shell was killed by signal {} ({})", end.signal,
                         strsignal(end.signal));
    }
    if (frame_.has_begun() || end.status != 0) {
      return fmt::format("its shell ended with status {}", end.status);
    }
    return "its login shell ended without running the command: one of its start-up files (.bashrc, "
           ".zshenv, config.fish) exits or replaces the shell by another one";
  }

  void read_all() {
    read(process_->output(), [this](std::string_view bytes) { frame_.add_output(bytes); });
    read(process_->errors(), [this](std::string_view bytes) { frame_.add_errors(bytes); });
  }

  static void read(OwnedFd& fd, const std::function<void(std::string_view)>& take) {
    std::array<char, 4096> buffer;
    while (fd.open()) {
      const ssize_t bytes = ::read(fd.get(), buffer.data(), buffer.size());
      if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (bytes <= 0) return fd.reset();
      take({buffer.data(), static_cast<std::size_t>(bytes)});
    }
  }

  const std::string marker_;
  const bool is_joined_;  // by ticket
  std::optional<Process> process_;
  FramedOutput frame_;
  MachineResponse answer_;
};

using QueriedMachines = std::vector<std::unique_ptr<QueriedMachine>>;

// Reads until all machines have answered.
Result<void> hear_all(const QueriedMachines& asked,
                      double answer_s,
                      const QueryInterrupt& interrupt) {
  const Deadline deadline = Deadline::after_s(answer_s);
  while (true) {
    std::vector<pollfd> fds = {{.fd = interrupt.fd, .events = POLLIN}};
    for (const auto& machine : asked) {
      if (machine->is_open()) machine->watch(fds);
    }
    if (fds.size() == 1) return {};
    const double left_ms = std::ceil(deadline.left_s() * 1e3);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::min(left_ms, 1e9)));
    if (const std::optional<Error> stop = interrupt.take()) return *stop;
    for (const auto& machine : asked) {
      if (machine->is_open() && ready > 0) machine->hear();
      if (machine->is_open() && deadline.passed()) machine->give_up(answer_s);
    }
  }
}

}  // namespace

Result<std::vector<MachineResponse>> query_machines(const std::vector<MachineQuery>& questions,
                                                    double answer_s) {
  StopSignals signals;
  return query_machines(questions, answer_s, {signals.fd(), [&] { return signals.take(); }});
}

Result<std::vector<MachineResponse>> query_machines(const std::vector<MachineQuery>& questions,
                                                    double answer_s,
                                                    const QueryInterrupt& interrupt) {
  MOTLEY_ASSIGN(const std::string random, make_secret());
  const std::string marker = "motley" + to_hex(std::span(random).first(kMarkerBytes));
  QueriedMachines asked;
  for (const MachineQuery& question : questions) {
    asked.push_back(std::make_unique<QueriedMachine>(question, marker));
  }
  MOTLEY_TRY(hear_all(asked, answer_s, interrupt));
  std::vector<MachineResponse> answers;
  for (const auto& machine : asked) answers.push_back(machine->take());
  return answers;
}

}  // namespace motley
