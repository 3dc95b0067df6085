#include "checkpoint/lock/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "base/system/files.h"
#include "base/system/owned_fd.h"
#include "base/system/process_identity.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/lock/launch_record.h"
#include "tests/base/no_more_threads.h"
#include "tests/checkpoint/run_lock_fixture.h"
#include "tests/e2e/small_disk.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RunLockTest : public RunLockFixture {};

TEST_F(RunLockTest, IsTakenOnAFullDiskInThePlaceOfTheLaunchBefore) {
  const test::SmallDisk disk(dir_, "64k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  { ASSERT_TRUE(acquire().ok()); }
  std::ofstream filler(dir_ / "filler");
  for (int i = 0; i < 64 && filler; ++i) filler << std::string(4096, 'x') << std::flush;
  ASSERT_EQ(free_disk_bytes(dir_), 0U);
  const Result<RunLock> next = acquire();
  ASSERT_TRUE(next.ok()) << next.error().what << ": " << next.error().cause;
  EXPECT_EQ(next->number(), 2);
  EXPECT_FALSE(acquire().ok()) << "its record is whole: it is known to run";
}

TEST_F(RunLockTest, IsHeldByOneLauncherAtATime) {
  const Result<RunLock> first = acquire();
  ASSERT_TRUE(first.ok()) << describe(first.error());
  EXPECT_TRUE(first->launch().starts_with("000001-"));
  EXPECT_TRUE(require_launch(dir_, first->launch()).ok());
  const Result<RunLock> second = acquire();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kPeer);
  EXPECT_THAT(second.error().cause, AllOf(HasSubstr(fmt::format("process {} on ", ::getpid())),
                                          HasSubstr("since 20"), HasSubstr(" UTC")));
  EXPECT_TRUE(require_launch(dir_, first->launch()).ok());
}

TEST_F(RunLockTest, IsGivenBackAndNeverGivesANumberTwice) {
  for (const char* number : {"000001-", "000002-", "000003-"}) {
    const Result<RunLock> lock = acquire();
    ASSERT_TRUE(lock.ok()) << describe(lock.error());
    EXPECT_TRUE(lock->launch().starts_with(number)) << lock->launch();
  }
  EXPECT_EQ(last_launch(dir_), 3);
  EXPECT_FALSE(std::filesystem::exists(launch_file(dir_, 2)));
}

// Frames carry the number in 32 bits.
TEST_F(RunLockTest, IsRefusedWhereNoHigherNumberIsLeft) {
  write_record(std::numeric_limits<std::uint32_t>::max() - 1, /*is_free=*/true);
  EXPECT_TRUE(acquire().ok());
  const Result<RunLock> lock = acquire();
  ASSERT_FALSE(lock.ok());
  EXPECT_EQ(lock.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(lock.error().what, HasSubstr("4294967295.json"));
}

// Without waiting: the process is known to have ended, even if its parent has not reaped it.
TEST_F(RunLockTest, OfAKilledLauncherIsTakenAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<RunLock> lock = acquire();
    ::kill(::getpid(), SIGKILL);
  }
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(last_launch(dir_), 1);
  const auto begin = std::chrono::steady_clock::now();
  const Result<RunLock> lock = RunLock::acquire(dir_, log_);  // for another machine's lock this
                                                              // would wait 20 s
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ::waitpid(child, nullptr, 0);
}

// Where it is known that no other computer can hold the lock, a wait for renewals would not end in
// time; elsewhere the lock is taken once it is not renewed.
TEST_F(RunLockTest, OfThisMachineBeforeItsLastBootIsTakenAtOnce) {
  ProcessIdentity owner = this_process();
  const bool is_known = !owner.installation.empty() && is_on_own_disk(dir_);
  owner.place = "11111111-2222-3333-4444-555555555555 pid:[4026531836]";
  write_record_of(owner, 4, /*is_free=*/false);
  EXPECT_EQ(is_of_earlier_boot(owner), !owner.installation.empty());
  const Result<RunLock> lock =
      is_known ? RunLock::acquire(dir_, log_, {.renew_s = 5, .stale_s = 1e6}) : acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  EXPECT_EQ(lock->number(), 5);
}

TEST_F(RunLockTest, OfAnotherMachineIsTakenOnceNothingIsHeardOfIt) {
  write_record(4);
  const Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  EXPECT_TRUE(lock->launch().starts_with("000005-"));
}

TEST_F(RunLockTest, OfAnotherMachineIsLeftWhileItIsRenewed) {
  write_record(4);
  std::atomic<bool> stop = false;
  std::thread launcher([&] {
    while (!stop) {
      std::filesystem::last_write_time(launch_file(dir_, 4),
                                       std::filesystem::file_time_type::clock::now());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const Result<RunLock> lock = acquire();
  stop = true;
  launcher.join();
  ASSERT_FALSE(lock.ok());
  EXPECT_EQ(lock.error().code, ErrorCode::kPeer);
  EXPECT_THAT(lock.error().cause, HasSubstr("process 77 on box, since 2026-11-22 16:40:11 UTC"));
}

TEST_F(RunLockTest, OfAnotherMachineThatGaveItBackIsTakenAtOnce) {
  write_record(4, /*is_free=*/true);
  const Result<RunLock> lock = RunLock::acquire(dir_, log_, {.renew_s = 5, .stale_s = 3600});
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
}

TEST_F(RunLockTest, ThatWasNeverWrittenWholeIsTaken) {
  write_record(1);
  std::ofstream(launch_file(dir_, 2)) << R"({"launch":"0000)";
  const Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  EXPECT_TRUE(lock->launch().starts_with("000003-"));
}

// As for a launcher that was suspended for too long.
TEST_F(RunLockTest, ThatAnotherTookOverIsLost) {
  Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  ASSERT_TRUE(lock->confirm().ok());
  write_record(2);
  const Result<void> confirmed = confirm_until_lost(*lock);
  ASSERT_FALSE(confirmed.ok());
  EXPECT_EQ(confirmed.error().code, ErrorCode::kPeer);
  EXPECT_THAT(confirmed.error().what, HasSubstr("another launcher has acquired the lock of"));
  EXPECT_THAT(confirmed.error().cause, HasSubstr("process 77 on box"));
  EXPECT_EQ(last_launch(dir_), 2);
}

TEST_F(RunLockTest, IsLostWithItsFolder) {
  Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  std::filesystem::remove_all(dir_);
  const Result<void> confirmed = confirm_until_lost(*lock);
  ASSERT_FALSE(confirmed.ok());
  EXPECT_THAT(confirmed.error().what, HasSubstr("was removed"));
}

// A lock that blocked on the pipe would keep this test from ending.
TEST_F(RunLockTest, IsLostWhereAPipeLiesInThePlaceOfItsRecord) {
  for (const bool is_read : {false, true}) {
    Result<RunLock> lock = acquire();
    ASSERT_TRUE(lock.ok()) << describe(lock.error());
    const std::filesystem::path record = launch_file(dir_, lock->number());
    std::filesystem::remove(record);
    ASSERT_EQ(::mkfifo(record.c_str(), 0600), 0);
    const OwnedFd reader(is_read ? ::open(record.c_str(), O_RDONLY | O_NONBLOCK) : -1);
    const Result<void> confirmed = confirm_until_lost(*lock);
    ASSERT_FALSE(confirmed.ok());
    EXPECT_EQ(confirmed.error().code, ErrorCode::kPeer);
    EXPECT_THAT(confirmed.error().cause, HasSubstr("not a regular file"));
    lock = confirmed.error();  // releases it
    char some[64];
    EXPECT_LE(::read(reader.get(), some, sizeof some), 0) << "it was written to";
    std::filesystem::remove(record);
  }
}

TEST_F(RunLockTest, IsLostWhereALinkLiesInThePlaceOfItsRecord) {
  Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  const std::filesystem::path target = link_record_elsewhere();
  const Result<void> confirmed = confirm_until_lost(*lock);
  ASSERT_FALSE(confirmed.ok());
  EXPECT_THAT(confirmed.error().what, HasSubstr("is not a launch record"));
  expect_untouched(target);
}

TEST_F(RunLockTest, IsNotGivenBackThroughALink) {
  std::optional<Result<RunLock>> lock(
      RunLock::acquire(dir_, log_, {.renew_s = 3600, .stale_s = 1}));
  ASSERT_TRUE(lock->ok()) << describe(lock->error());
  const std::filesystem::path target = link_record_elsewhere();
  lock.reset();
  expect_untouched(target);
}

TEST_F(RunLockTest, IsRefusedWhereTheLastRecordIsNone) {
  ASSERT_TRUE(make_folders(launches_folder(dir_)).ok());
  ASSERT_EQ(::mkfifo(launch_file(dir_, 3).c_str(), 0600), 0);
  const Result<RunLock> refused = acquire();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(refused.error().cause, "it is not a regular file");
  // The hint's remedy keeps the numbers increasing.
  std::filesystem::remove(launch_file(dir_, 3));
  std::ofstream(launch_file(dir_, 3)).flush();
  const Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  EXPECT_EQ(lock->number(), 4);
}

TEST_F(RunLockTest, IsGivenBackWhereNoThreadCanHoldIt) {
  std::optional<test::NoMoreThreads> no_more_threads(std::in_place);
  const Result<RunLock> refused = acquire();
  no_more_threads.reset();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().remedy, HasSubstr("ulimit -u"));
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
  EXPECT_TRUE(acquire().ok());
}

TEST_F(RunLockTest, GoesToOneOfManyThatComeAtOnce) {
  constexpr int kLaunchers = 16;
  write_record(7, /*is_free=*/true);
  std::barrier begin(kLaunchers);
  std::barrier end(kLaunchers);
  std::atomic<int> holders = 0;
  std::vector<std::thread> launchers;
  for (int i = 0; i < kLaunchers; ++i) {
    launchers.emplace_back([&] {
      begin.arrive_and_wait();
      const Result<RunLock> lock = acquire();
      if (lock.ok()) ++holders;
      end.arrive_and_wait();
    });
  }
  for (std::thread& launcher : launchers) launcher.join();
  EXPECT_EQ(holders, 1);
}

TEST_F(RunLockTest, IsJoinedByOneProcessOfALaunchThatHasItsNumber) {
  write_record(3, /*is_free=*/true);
  const std::string launch = "000005-00112233445566ff";
  const auto first = RunLock::join(dir_, launch, log_, kQuick);
  ASSERT_TRUE(first.ok()) << describe(first.error());
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->launch(), launch);
  EXPECT_TRUE(require_launch(dir_, launch).ok());
  const auto second = RunLock::join(dir_, launch, log_, kQuick);
  ASSERT_TRUE(second.ok()) << describe(second.error());
  EXPECT_FALSE(second->has_value());
  const auto other = RunLock::join(dir_, "000006-ffeeddccbbaa9988", log_, kQuick);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().what, HasSubstr("another launcher runs in"));
  EXPECT_THAT(other.error().cause, HasSubstr("worker process"));
  EXPECT_THAT(other.error().cause, HasSubstr("a launcher that may be on another machine"));
  EXPECT_THAT(other.error().remedy, HasSubstr("motley watch " + dir_.string()));
}

TEST_F(RunLockTest, IsNotJoinedWhereALaterLaunchHasBeen) {
  write_record(7, /*is_free=*/true);
  for (const char* launch : {"000006-00112233445566ff", "000007-00112233445566ff"}) {
    const auto joined = RunLock::join(dir_, launch, log_, kQuick);
    ASSERT_FALSE(joined.ok()) << launch;
    EXPECT_EQ(joined.error().code, ErrorCode::kPeer);
    EXPECT_THAT(joined.error().what, HasSubstr("a later launch was started in"));
  }
}

TEST_F(RunLockTest, RisesAboveANumberThatOtherFoldersHaveSeen) {
  Result<RunLock> lock = acquire();
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  ASSERT_TRUE(lock->advance_past(0, log_).ok());
  EXPECT_EQ(lock->number(), 1);
  ASSERT_TRUE(lock->advance_past(41, log_).ok());
  EXPECT_EQ(lock->number(), 42);
  EXPECT_TRUE(require_launch(dir_, lock->launch()).ok());
  EXPECT_FALSE(acquire().ok());
}

TEST(ProcessIdentity, TellsARunningProcessFromOneThatHasGone) {
  const ProcessIdentity self = this_process();
  EXPECT_EQ(liveness_of(self), ProcessLiveness::kRuns);
  ProcessIdentity before = self;  // the same pid, reused
  before.started -= 1;
  EXPECT_EQ(liveness_of(before), ProcessLiveness::kGone);
  ProcessIdentity elsewhere = self;
  elsewhere.place += "x";
  EXPECT_EQ(liveness_of(elsewhere), ProcessLiveness::kElsewhere);
  EXPECT_EQ(liveness_of({}), ProcessLiveness::kElsewhere);
}

TEST(ProcessIdentity, TellsAnEarlierBootFromAnotherMachineAndAnotherContainer) {
  const ProcessIdentity self = this_process();
  if (self.installation.empty()) GTEST_SKIP() << "this system has no id";
  EXPECT_FALSE(is_of_earlier_boot(self));
  ProcessIdentity container = self;
  container.place += "1";
  EXPECT_FALSE(is_of_earlier_boot(container));
  ProcessIdentity rebooted = self;
  rebooted.place.front() = rebooted.place.front() == '0' ? '1' : '0';
  EXPECT_TRUE(is_of_earlier_boot(rebooted));
  for (std::string ProcessIdentity::*of_another :
       {&ProcessIdentity::host, &ProcessIdentity::installation}) {
    ProcessIdentity other = rebooted;
    other.*of_another += "x";
    EXPECT_FALSE(is_of_earlier_boot(other));
    (other.*of_another).clear();
    EXPECT_FALSE(is_of_earlier_boot(other));
  }
}

}  // namespace
}  // namespace motley
