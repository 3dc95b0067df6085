// The worker's end of a lease: behaviour when the launcher sends nothing more and closes nothing,
// for example because its machine lost power.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/process/process.h"
#include "base/result.h"
#include "protocol/lease_status.h"

namespace motley {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr double kLongLease_s = 3;

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() {
    std::filesystem::create_directories(folder_);
    ::signal(SIGPIPE, SIG_IGN);  // a worker that exited must fail the test, not kill it
  }

  ~LeaseTest() override { std::filesystem::remove_all(folder_); }

  // Starts a worker with a short lease, or with one (kLongLease_s) that is renewed and outlasts
  // the pauses of a busy computer.
  [[nodiscard]] Process start(const std::string& what,
                              const std::string& with = "",
                              double lease_s = 0.5) const {
    return Process::start({"env", "MOTLEY_LAST_WORDS=" + (folder_ / "words").string(),
                           fmt::format("MOTLEY_LEASE_S={}", lease_s), MOTLEY_LEASED_WORKER, what,
                           with})
        .value();
  }

  // Seconds until the process has ended, at most `most_s`.
  static double ends_in_s(const Process& process, double most_s) {
    const double start_s = now_s();
    pollfd ended{.fd = process.exit_fd(), .events = POLLIN};
    ::poll(&ended, 1, static_cast<int>(most_s * 1e3));
    return now_s() - start_s;
  }

  static bool has_ended(const Process& process) {
    pollfd ended{.fd = process.exit_fd(), .events = POLLIN};
    return ::poll(&ended, 1, 0) == 1;
  }

  static void renew(Process& process, int count) {
    const std::string line = fmt::format("{{\"lease\":{}}}\n", count);
    EXPECT_EQ(::write(process.input().get(), line.data(), line.size()),
              static_cast<ssize_t>(line.size()));
  }

  static std::string text_of(const OwnedFd& fd) {
    std::string text(1 << 12, '\0');
    const ssize_t count = ::read(fd.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("motley-lease-{}", ::getpid());
};

TEST_F(LeaseTest, EndsAWorkerThatComputes) {
  Process worker = start("busy");
  EXPECT_LT(ends_in_s(worker, 20), 10);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, kLeaseExpiredStatus);
  EXPECT_THAT(text_of(worker.errors()), HasSubstr("no message from the launcher for 0.5 s"));
  std::ifstream words(folder_ / "words");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(words), {}), HasSubstr("0.5 s"));
}

TEST_F(LeaseTest, EndsAWorkerThatIsStuckInASystemCall) {
  const std::filesystem::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Process worker = start("blocked", fifo.string());
  EXPECT_LT(ends_in_s(worker, 20), 10);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, kLeaseExpiredStatus);
}

TEST_F(LeaseTest, EndsAWorkerThatNobodyReads) {
  Process worker = start("mute");
  EXPECT_LT(ends_in_s(worker, 20), 10);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, kLeaseExpiredStatus);
}

TEST_F(LeaseTest, IsRenewedByAWord) {
  Process worker = start("busy", "", kLongLease_s);
  for (int i = 0; i < 35; ++i) {
    std::this_thread::sleep_for(100ms);
    renew(worker, 1);
  }
  EXPECT_FALSE(has_ended(worker));
}

TEST_F(LeaseTest, DoesNotCountWhileTheWorkerItselfIsStopped) {
  Process worker = start("busy", "", kLongLease_s);
  renew(worker, 1);
  std::this_thread::sleep_for(100ms);
  ASSERT_EQ(::kill(worker.pid(), SIGSTOP), 0);
  std::this_thread::sleep_for(4500ms);
  ASSERT_EQ(::kill(worker.pid(), SIGCONT), 0);
  for (int i = 0; i < 5; ++i) {
    renew(worker, 1);
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_FALSE(has_ended(worker));
}

TEST_F(LeaseTest, ProlongsWaitsWhileTheGroupGetsOn) {
  Process worker = start("wait", "2", kLongLease_s);
  for (int i = 0; i < 25; ++i) {
    renew(worker, i);
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_FALSE(has_ended(worker));
  const std::string word = "{\"word\":1}\n";
  ASSERT_EQ(::write(worker.input().get(), word.data(), word.size()),
            static_cast<ssize_t>(word.size()));
  (void)ends_in_s(worker, 10);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, 0);
}

TEST_F(LeaseTest, ProlongsNoWaitWhereNobodyGetsOn) {
  Process worker = start("wait", "0.4");
  for (int i = 0; i < 15 && !has_ended(worker); ++i) {
    renew(worker, 1);
    std::this_thread::sleep_for(100ms);
  }
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, static_cast<int>(ErrorCode::kPeer));
}

// Waits for the first event, after which a worker of "save" or "stall" outlives its launcher.
void wait_for_hello(Process& worker) {
  std::string text;
  for (char c = 0; text.find("hello") == text.npos;) {
    pollfd readable{.fd = worker.output().get(), .events = POLLIN};
    ASSERT_EQ(::poll(&readable, 1, 30'000), 1);
    ASSERT_EQ(::read(worker.output().get(), &c, 1), 1);
    text += c;
  }
}

// Its events fill the pipe, which no launcher reads.
TEST_F(LeaseTest, LetsATrainingWorkerSaveFirst) {
  Process worker = start("save", "1.5");
  (void)ends_in_s(worker, 30);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, kLeaseExpiredStatus);
  std::ifstream words(folder_ / "words");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(words), {}), "saved");
}

TEST_F(LeaseTest, TheEndOfTheInputLetsATrainingWorkerSaveFirst) {
  Process worker = start("save", "1.5", 60);
  wait_for_hello(worker);
  worker.input().reset();
  (void)ends_in_s(worker, 30);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, static_cast<int>(ErrorCode::kTerminated));
  std::ifstream words(folder_ / "words");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(words), {}), "saved");
}

TEST_F(LeaseTest, AnOrderToStopLetsNoWorkerSave) {
  Process worker = start("save", "1.5", 60);
  wait_for_hello(worker);
  const std::string stop = "{\"stop\":true}\n";
  EXPECT_EQ(::write(worker.input().get(), stop.data(), stop.size()),
            static_cast<ssize_t>(stop.size()));
  (void)ends_in_s(worker, 30);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, static_cast<int>(ErrorCode::kTerminated));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "words"));
}

TEST_F(LeaseTest, EndsASaveWithoutProgress) {
  Process worker = start("stall", "", 60);
  wait_for_hello(worker);
  worker.input().reset();
  (void)ends_in_s(worker, 30);
  ASSERT_TRUE(has_ended(worker));
  EXPECT_EQ(worker.reap().status, static_cast<int>(ErrorCode::kTerminated));
}

}  // namespace
}  // namespace motley
