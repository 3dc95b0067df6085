#include "cluster/launch/reachability.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include <vector>

#include "base/clock.h"
#include "cluster/launch/worker_command.h"
#include "cluster/launch/workers.h"
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
class Question {
 public:
  Question(const Machine& machine, const std::filesystem::path& program)
      : machine_(machine), program_(stage_program_on(machine, program)) {}

  void ask() {
    Result<Process> process =
        Process::start(remote_command(machine_.shell, {"test", "-x", program_.string()}));
    if (!process.ok()) {
      trouble_ = fmt::format("{}: {}", process.error().what, process.error().cause);
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

  // Takes what it says, and its end if that has come. A login shell's greeting is nothing to us.
  void hear() {
    read(process_->output(), nullptr);
    read(process_->errors(), &said_);
    pollfd exit{.fd = process_->exit_fd(), .events = POLLIN};
    if (::poll(&exit, 1, 0) <= 0) return;
    read(process_->errors(), &said_);
    take_exit(process_->reap());
    process_.reset();
  }

  void give_up(double after_s) {
    process_.reset();
    trouble_ = fmt::format("no answer within {:g} s", after_s);
  }

  [[nodiscard]] const std::string& name() const { return machine_.name; }

  // Why the machine cannot be used; empty when it can.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

  // "" where it is not reached by ssh.
  [[nodiscard]] std::string ssh_command() const {
    return is_ssh(machine_.shell) ? fmt::format("{}", fmt::join(machine_.shell, " ")) : "";
  }

 private:
  static void read(OwnedFd& fd, std::string* into) {
    std::array<char, 4096> buffer;
    while (fd.open()) {
      const ssize_t bytes = ::read(fd.get(), buffer.data(), buffer.size());
      if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (bytes <= 0) return fd.reset();
      if (into == nullptr) continue;
      const std::size_t room = kWordsBytesMax - std::min(into->size(), kWordsBytesMax);
      into->append(buffer.data(), std::min(static_cast<std::size_t>(bytes), room));
    }
  }

  void take_exit(const ProcessExit& exit) {
    if (exit.signal == 0 && exit.status == 0) return;
    const std::string words = last_line(said_);
    if (exit.signal != 0) {
      trouble_ = fmt::format("its shell was killed by signal {} ({})", exit.signal,
                             strsignal(exit.signal));
    } else if (exit.status == 1 && words.empty()) {
      trouble_ = fmt::format("no program {} there that may be run", program_.string());
    } else {
      trouble_ = fmt::format("its shell ended with status {}", exit.status);
    }
    if (!words.empty()) trouble_ += ": " + words;
  }

  const Machine& machine_;
  const std::filesystem::path program_;
  std::optional<Process> process_;
  std::string said_;
  std::string trouble_;
};

using Questions = std::vector<std::unique_ptr<Question>>;

// Until all have answered.
Result<void> hear_all(const Questions& questions, double answer_s) {
  StopSignals signals;
  const Deadline deadline = Deadline::after_s(answer_s);
  while (true) {
    std::vector<pollfd> fds = {{.fd = signals.fd(), .events = POLLIN}};
    for (const auto& question : questions) {
      if (question->is_open()) question->watch(fds);
    }
    if (fds.size() == 1) return {};
    const double left_ms = std::ceil(deadline.left_s() * 1e3);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::min(left_ms, 1e9)));
    if (const std::optional<Error> stop = signals.take()) return *stop;
    for (const auto& question : questions) {
      if (question->is_open() && ready > 0) question->hear();
      if (question->is_open() && deadline.passed()) question->give_up(answer_s);
    }
  }
}

Result<void> answer_of(const Questions& questions) {
  std::vector<std::string> names;
  std::vector<std::string> troubles;
  std::string ssh_command;
  for (const auto& question : questions) {
    if (question->trouble().empty()) continue;
    names.push_back(question->name());
    troubles.push_back(fmt::format("{}: {}", question->name(), question->trouble()));
    if (ssh_command.empty()) ssh_command = question->ssh_command();
  }
  if (names.empty()) return {};
  const std::string ssh_remedy =
      ssh_command.empty()
          ? ""
          : fmt::format("'{} true' must work without asking for a password; ", ssh_command);
  return Error{
      ErrorCode::kPeer,
      fmt::format("{} cannot be used: {}", names.size() == 1 ? "a machine" : "some machines",
                  fmt::join(names, ", ")),
      fmt::format("{}", fmt::join(troubles, "; ")),
      fmt::format("{}'motley doctor' looks closer; 'motley_dir' in the cluster file says where the "
                  "program is; a machine that is off must not be in the file",
                  ssh_remedy)};
}

}  // namespace

Result<void> check_reachable(const Cluster& cluster,
                             const std::set<std::string>& machines,
                             const std::filesystem::path& program,
                             double answer_s) {
  Questions questions;
  for (const Machine& machine : cluster.machines) {
    if (!machines.contains(machine.name)) continue;
    for (const std::string& device : machine.devices) MOTLEY_TRY(check_device(device));
    if (machine.shell.empty() && machine.motley_dir.empty()) continue;
    questions.push_back(std::make_unique<Question>(machine, program));
  }
  for (const auto& question : questions) question->ask();
  MOTLEY_TRY(hear_all(questions, answer_s));
  return answer_of(questions);
}

}  // namespace motley
