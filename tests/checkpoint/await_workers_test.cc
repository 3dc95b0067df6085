// A launch waits for the workers of a launcher that is gone, and for no others.
#include "checkpoint/lock/await_workers.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "tests/checkpoint/run_lock_fixture.h"

namespace motley {
namespace {

constexpr std::chrono::milliseconds kMoment(50);

class AwaitWorkersTest : public RunLockFixture {
 protected:
  static constexpr const char* kLaunch = "000004-0123456789abcdef";

  // A record of a process of this machine that does not run.
  void write_record_of_killed(bool is_free = false) const {
    ProcessIdentity owner = this_process();
    owner.started = std::numeric_limits<std::uint32_t>::max();
    write_record_of(owner, 4, is_free);
  }

  Result<RunLock> acquire_within(double saving_s) const {
    return RunLock::acquire(dir_, log_, {.renew_s = 5, .stale_s = 1e6, .saving_s = saving_s});
  }
};

TEST_F(AwaitWorkersTest, UntilTheLastHasEnded) {
  write_record_of_killed();
  EXPECT_FALSE(has_workers(dir_, 4));
  OwnedFd one = mark_worker(dir_, kLaunch);
  OwnedFd other = mark_worker(dir_, kLaunch);
  ASSERT_TRUE(one.open() && other.open());
  EXPECT_TRUE(has_workers(dir_, 4));
  std::atomic<bool> has_ended = false;
  std::jthread ends([&, first = std::move(one), second = std::move(other)]() mutable {
    first.reset();
    std::this_thread::sleep_for(3 * kMoment);
    has_ended = true;
    second.reset();
  });
  const Result<RunLock> lock = acquire_within(60);
  EXPECT_TRUE(has_ended);
  ASSERT_TRUE(lock.ok()) << describe(lock.error());
  EXPECT_EQ(lock->number(), 5);
}

TEST_F(AwaitWorkersTest, AsLongAsTheyWrite) {
  write_record_of_killed();
  OwnedFd mark = mark_worker(dir_, kLaunch);
  const std::filesystem::path partial = partial_folder({dir_, kLaunch, 7});
  ASSERT_TRUE(make_folders(partial).ok());
  std::atomic<bool> has_ended = false;
  std::jthread writes([&, held = std::move(mark)]() mutable {
    for (int i = 0; i < 30; ++i) {
      std::ofstream(partial / "model", std::ios::app) << "more";
      std::this_thread::sleep_for(kMoment);
    }
    has_ended = true;
    held.reset();
  });
  EXPECT_TRUE(acquire_within(1).ok());
  EXPECT_TRUE(has_ended);
}

TEST_F(AwaitWorkersTest, NoLongerThanItsLimit) {
  write_record_of_killed();
  const OwnedFd mark = mark_worker(dir_, kLaunch);
  EXPECT_TRUE(acquire_within(0.2).ok());
  EXPECT_TRUE(mark.open());
}

TEST_F(AwaitWorkersTest, NotThoseOfALauncherThatReleasedTheFolder) {
  write_record_of_killed(/*is_free=*/true);
  const OwnedFd mark = mark_worker(dir_, kLaunch);
  EXPECT_TRUE(acquire_within(1e6).ok());
}

}  // namespace
}  // namespace motley
