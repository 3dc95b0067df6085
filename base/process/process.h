// Process: a child process in its own process group, with pipes to its three standard streams.
//
// Started by posix_spawnp and never by fork, so it is safe in a process that has threads. The child
// inherits only the three pipes, an empty signal mask and default dispositions. No function waits,
// except the destructor; callers poll the descriptors. One owner thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

struct ProcessExit {
  int status = 0;  // exit status, if it was not killed
  int signal = 0;  // the signal that killed it; 0 = it exited
};

// Raises this process's soft limit of open files to its hard limit: each worker takes five. Beyond
// that, creating a pipe fails with an error.
void allow_many_files();

class Process {
 public:
  // argv[0] is looked up in PATH. kPeer if it cannot be started, kInternal if the system refuses a
  // descriptor. REQUIRES: argv is not empty.
  [[nodiscard]] static Result<Process> start(const std::vector<std::string>& argv);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Kills the group and reaps the child, unless that has happened. Gives up after kKillWait_s on a
  // process that the kernel cannot end (one stuck in a device); it then stays as a zombie.
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }

  [[nodiscard]] OwnedFd& input() { return input_; }  // its stdin; non-blocking

  [[nodiscard]] OwnedFd& output() { return output_; }  // its stdout; non-blocking

  [[nodiscard]] OwnedFd& errors() { return errors_; }  // its stderr; non-blocking

  [[nodiscard]] int exit_fd() const { return exit_.get(); }  // readable once it has ended

  // Sends SIGKILL to the whole group, which also ends stopped processes. No effect once reaped.
  void kill_group() const;

  // Collects the exit status of a process that has ended and kills the rest of its group.
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
