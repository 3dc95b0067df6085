#include "base/process/process.h"

#include <poll.h>
#include <signal.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process_state.h"

namespace motley {
namespace {

// Blocks until the descriptor is readable or at its end; the ctest timeout bounds it.
void await(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN};
  ASSERT_EQ(::poll(&ready, 1, -1), 1);
}

std::string read_all(const OwnedFd& fd) {
  std::string text;
  char buffer[256];
  while (true) {
    await(fd.get());
    const ssize_t bytes = ::read(fd.get(), buffer, sizeof(buffer));
    if (bytes <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(bytes));
  }
}

Process start(const std::string& script) {
  Result<Process> process = Process::start({"sh", "-c", script});
  EXPECT_TRUE(process.ok());
  return std::move(process).value();
}

ProcessExit exit_of(Process& process) {
  await(process.exit_fd());
  return process.reap();
}

TEST(Process, HasThreeStreamsAndAnExitStatus) {
  Process process = start("read word; echo out $word; echo err $word >&2; exit 7");
  ASSERT_EQ(::write(process.input().get(), "hi\n", 3), 3);
  EXPECT_EQ(read_all(process.output()), "out hi\n");
  EXPECT_EQ(read_all(process.errors()), "err hi\n");
  const ProcessExit exit = exit_of(process);
  EXPECT_EQ(exit.status, 7);
  EXPECT_EQ(exit.signal, 0);
}

TEST(Process, TellsTheSignalThatEndedIt) {
  Process process = start("kill -SEGV $$");
  EXPECT_EQ(exit_of(process).signal, SIGSEGV);
}

TEST(Process, SeesTheEndOfItsInput) {
  Process first = start("cat >/dev/null");
  Process second = start("cat >/dev/null");  // must not inherit the first one's input
  first.input().reset();
  EXPECT_EQ(exit_of(first).status, 0);
}

TEST(Process, InheritsNothingButItsThreeStreams) {
  Process process = start("exec ls /proc/self/fd");  // ls opens a fourth descriptor itself
  EXPECT_EQ(read_all(process.output()), "0\n1\n2\n3\n");
}

TEST(Process, IsTheLeaderOfItsOwnGroup) {
  Process process = start("cat");
  EXPECT_EQ(::getpgid(process.pid()), process.pid());
}

TEST(Process, TakesItsGrandchildrenAlong) {
  Process process = start("sleep 1000 >/dev/null & echo $!");
  const pid_t grandchild = std::stoi(read_all(process.output()));
  EXPECT_TRUE(runs(grandchild));
  (void)exit_of(process);
  EXPECT_TRUE(ends(grandchild));
}

TEST(Process, IsKilledEvenWhenStopped) {
  Process process = start("kill -STOP $$");
  process.kill_group();
  EXPECT_EQ(exit_of(process).signal, SIGKILL);
}

TEST(Process, DoesNotOutliveItsObject) {
  pid_t pid = 0;
  {
    Process process = start("trap '' TERM INT; cat; sleep 1000");
    pid = process.pid();
    EXPECT_TRUE(runs(pid));
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Process, ThatCannotStartIsAnError) {
  const Result<Process> process = Process::start({"/nonexistent/program"});
  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.error().code, ErrorCode::kPeer);
}

}  // namespace
}  // namespace motley
