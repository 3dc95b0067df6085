#include "cluster/launch/start_gate.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

const std::vector<std::string> kSsh = {"ssh", "box"};

TEST(StartGate, LetsFewLogInAtOnce) {
  StartGate gate;
  int started = 0;
  for (; started < 100 && gate.is_open(kSsh, 10); ++started) gate.enter(kSsh, 10);
  EXPECT_GE(started, 2);
  EXPECT_LT(started, 10) << "sshd drops some of more than ten";
  EXPECT_TRUE(gate.is_open({"ssh", "other"}, 10)) << "another machine has an sshd of its own";
}

TEST(StartGate, OpensWhenOneHasLoggedInAndAfterAWhile) {
  StartGate gate;
  while (gate.is_open(kSsh, 10)) gate.enter(kSsh, 10);
  EXPECT_TRUE(gate.is_open(kSsh, 13));
  gate.leave(kSsh);
  EXPECT_TRUE(gate.is_open(kSsh, 10));
}

TEST(StartGate, HoldsNobodyUpWhoDoesNotLogIn) {
  StartGate gate;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(gate.is_open({"ip", "netns", "exec", "m1"}, 10));
    gate.enter({"ip", "netns", "exec", "m1"}, 10);
  }
}

TEST(StartGate, TellsABusySshdFromOneThatRefuses) {
  const ProcessExit failed{.status = 255};
  EXPECT_TRUE(
      was_rejected(kSsh, failed, {"kex_exchange_identification: read: Connection reset by peer"}));
  EXPECT_TRUE(was_rejected(kSsh, failed,
                           {"kex_exchange_identification: Connection closed by remote host"}));
  EXPECT_FALSE(was_rejected(kSsh, failed, {"root@box: Permission denied (publickey)."}));
  EXPECT_FALSE(
      was_rejected(kSsh, failed, {"ssh: connect to host box port 22: Connection refused"}));
  EXPECT_FALSE(was_rejected(kSsh, {.status = 1}, {"Connection reset by peer"}));
  EXPECT_FALSE(was_rejected({"env"}, failed, {"Connection reset by peer"}));
}

TEST(StartGate, WaitsLongerEachTimeAndGivesUp) {
  EXPECT_GT(wait_before_retry_s(1), 0);
  EXPECT_GT(wait_before_retry_s(3), wait_before_retry_s(2));
  EXPECT_LT(wait_before_retry_s(100), 0);
}

}  // namespace
}  // namespace motley
