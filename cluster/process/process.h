// Process: one child process in its own process group, with pipes to its three standard streams.
//
// Started by posix_spawnp and never by fork, so it is safe in a process that has threads. The child
// inherits nothing but the three pipes, an empty signal mask and default dispositions. Everything
// here returns at once; waiting is poll's business, on the descriptors given out. One owner thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

struct ProcessExit {
  int status = 0;  // exit status, when not killed
  int signal = 0;  // the signal that ended it; 0 = it exited
};

// Raises this process's limit of open files as far as the system allows without asking: each
// worker takes five. Who needs more than that is told when a pipe cannot be made.
void allow_many_files();

class Process {
 public:
  // argv[0] is looked up in PATH. kPeer when it cannot be started. REQUIRES: argv is not empty.
  [[nodiscard]] static Result<Process> start(const std::vector<std::string>& argv);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Kills the group and reaps, if that has not happened. Gives up after kKillWait_s on a process
  // that the kernel cannot end (one stuck in a device); it then stays as a zombie.
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }

  [[nodiscard]] OwnedFd& input() { return input_; }  // its stdin; non-blocking

  [[nodiscard]] OwnedFd& output() { return output_; }  // its stdout; non-blocking

  [[nodiscard]] OwnedFd& errors() { return errors_; }  // its stderr; non-blocking

  [[nodiscard]] int exit_fd() const { return exit_.get(); }  // readable once it has ended

  // Kills the whole group with SIGKILL; also works on stopped processes. No effect once reaped.
  void kill_group() const;

  // Collects the exit of a process that has ended and kills what is left of its group.
  // REQUIRES: exit_fd() is readable; called once.
  [[nodiscard]] ProcessExit reap();

 private:
  static constexpr double kKillWait_s = 2;

  Process(pid_t pid, OwnedFd input, OwnedFd output, OwnedFd errors, OwnedFd exit);

  pid_t pid_ = -1;
  bool reaped_ = false;
  OwnedFd input_;
  OwnedFd output_;
  OwnedFd errors_;
  OwnedFd exit_;
};

}  // namespace motley
