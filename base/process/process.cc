#include "base/process/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/process/process_wait.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace motley {
namespace {

struct Pipe {
  OwnedFd read;
  OwnedFd write;
};

// Moves a pipe end away from 0, 1 and 2. If this program was started with these closed, dup2 in the
// child would otherwise overwrite an end that is still needed.
bool move_above_standard(OwnedFd& fd) {
  if (fd.get() > STDERR_FILENO) return true;
  fd = OwnedFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return fd.open();
}

Result<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) == 0) {
    Pipe pipe{OwnedFd(fds[0]), OwnedFd(fds[1])};
    if (move_above_standard(pipe.read) && move_above_standard(pipe.write)) return pipe;
  }
  return Error{ErrorCode::kInternal, "cannot make a pipe", std::strerror(errno),
               "raise the limit of open files (ulimit -n)"};
}

void set_nonblocking(const OwnedFd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  MOTLEY_CHECK(flags >= 0 && ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == 0, "errno {}",
               errno);
}

// Attributes and file actions of a spawn, destroyed with it.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  void connect(const OwnedFd& fd, int standard_fd) {
    posix_spawn_file_actions_adddup2(&actions_, fd.get(), standard_fd);
  }

  [[nodiscard]] int spawn(pid_t* pid, char* const* argv) {
    close_all_but_standard(&actions_);
    return ::posix_spawnp(pid, argv[0], &actions_, &attributes_, argv, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

void allow_many_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

Result<Process> Process::start(const std::vector<std::string>& argv) {
  MOTLEY_CHECK(!argv.empty(), "a process needs a program");
  MOTLEY_ASSIGN(Pipe input, make_pipe());
  MOTLEY_ASSIGN(Pipe output, make_pipe());
  MOTLEY_ASSIGN(Pipe errors, make_pipe());

  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  SpawnSetup setup;
  setup.connect(input.read, STDIN_FILENO);
  setup.connect(output.write, STDOUT_FILENO);
  setup.connect(errors.write, STDERR_FILENO);
  pid_t pid = -1;
  if (const int failure = setup.spawn(&pid, words.data()); failure != 0) {
    return Error{ErrorCode::kPeer, fmt::format("cannot start '{}'", argv[0]),
                 std::strerror(failure),
                 "check the machine's 'shell' in the cluster file and PATH"};
  }
  set_nonblocking(input.write);
  set_nonblocking(output.read);
  set_nonblocking(errors.read);

  // Owned from here on: if open_exit_fd fails, the destructor kills the process.
  Process process(pid, std::move(input.write), std::move(output.read), std::move(errors.read),
                  OwnedFd());
  MOTLEY_ASSIGN(process.exit_, open_exit_fd(pid));
  return process;
}

Process::Process(pid_t pid, OwnedFd input, OwnedFd output, OwnedFd errors, OwnedFd exit)
    : pid_(pid),
      input_(std::move(input)),
      output_(std::move(output)),
      errors_(std::move(errors)),
      exit_(std::move(exit)) {}

Process::Process(Process&& other) noexcept
    : pid_(other.pid_),
      reaped_(std::exchange(other.reaped_, true)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      exit_(std::move(other.exit_)) {}

Process::~Process() {
  if (reaped_) return;
  kill_group();
  pollfd ended{.fd = exit_.get(), .events = POLLIN};
  const Deadline deadline = Deadline::after_s(kKillWait_s);
  while (::poll(&ended, 1, static_cast<int>(deadline.left_s() * 1e3)) < 0 && errno == EINTR) {
  }
  if (ended.revents != 0) (void)reap();
}

void Process::kill_group() const {
  if (!reaped_) ::kill(-pid_, SIGKILL);
}

ProcessExit Process::reap() {
  MOTLEY_CHECK(!reaped_, "process {} was reaped already", pid_);
  // Wait without collecting first. While the leader is a zombie, its process group id cannot be
  // reused, so killing the rest of the group cannot hit an unrelated process.
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  kill_group();
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (info.si_code == CLD_EXITED) return {.status = info.si_status};
  return {.signal = info.si_status};
}

}  // namespace motley
