// The processes of one machine: one leads, the others end with its status.
#include "cli/launch/local_group.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr double kWait_s = 60;

std::string group_name() {
  return "group of " + std::to_string(::getpid());
}

std::future<Result<int>> follower() {
  return std::async(std::launch::async, [] { return follow_group(group_name(), kWait_s); });
}

TEST(LocalGroup, TellsTheOthersItsStatusWheneverTheyCome) {
  auto early = follower();
  auto leader = LocalGroup::lead(group_name(), 2);
  ASSERT_TRUE(leader.ok()) << describe(leader.error());
  auto ends = std::async(std::launch::async, [&] { leader->end(143); });
  auto late = follower();
  const auto first = early.get();
  const auto second = late.get();
  ends.get();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, 143);
  EXPECT_EQ(*second, 143);
}

TEST(LocalGroup, HasOneLeader) {
  const auto leader = LocalGroup::lead(group_name(), 0);
  ASSERT_TRUE(leader.ok());
  const auto second = LocalGroup::lead(group_name(), 0);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kPeer);
  EXPECT_THAT(second.error().what, HasSubstr("joins for this machine already"));
  EXPECT_TRUE(LocalGroup::lead(group_name() + "'s neighbour", 0).ok());
}

// The sockets with the group's name: the listener's, and one for each connection to it.
int sockets_of_group() {
  std::ifstream table("/proc/net/unix");
  const std::string group = group_name();
  const std::string name = hash128_hex(std::as_bytes(std::span(group)));
  int count = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.find(name) != std::string::npos) ++count;
  }
  return count;
}

TEST(LocalGroup, NoticesALeaderThatIsKilled) {
  const std::string group = group_name();  // not of the child
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto leader = LocalGroup::lead(group, 1);
    (void)!::write(ready[1], leader.ok() ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  auto waiting = follower();
  while (sockets_of_group() < 2) ::usleep(1000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto outcome = waiting.get();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
}

TEST(LocalGroup, ReportsALeaderThatNeverComes) {
  const auto outcome = follow_group(group_name(), 0.1);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().what, HasSubstr("has not started"));
}

}  // namespace
}  // namespace motley
