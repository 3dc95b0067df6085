// Who may send next, by a clock and a network that the test plays.
#include "comm/transport/send_turns.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "support/property.h"

namespace motley {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Answer = SendTurns::Answer;

constexpr std::uint64_t kRate = 100;  // bytes a microsecond that the machine can send

const Rank kFirst{1};
const Rank kSecond{2};
const Rank kThird{3};

class Turns : public testing::Test {
 protected:
  bool may_send(Rank to) { return turns_.may_begin_urgent(to) == Answer::kYes; }

  bool may_send_bulk(Rank to) { return turns_.may_begin_bulk(to, 1000) == Answer::kYes; }

  // The time passes, and all peers together take so many bytes a microsecond.
  std::vector<Rank> pass(std::chrono::microseconds time, std::uint64_t rate = kRate) {
    std::vector<Rank> released;
    for (; time > 0us; time -= SendTurns::kBetweenLooks) {
      now_ += SendTurns::kBetweenLooks;
      sent_[0].acknowledged_bytes +=
          rate * std::chrono::microseconds(SendTurns::kBetweenLooks).count();
      const auto more = look();
      released.insert(released.end(), more.begin(), more.end());
    }
    return released;
  }

  std::vector<Rank> look() { return turns_.look(now_, sent_).released; }

  int looks_asked_ = 0;
  SendTurns turns_{4, [this] { ++looks_asked_; }};
  SteadyClock::time_point now_{1h};
  std::vector<SendTurns::Sent> sent_{4};  // [Rank]; all that was acknowledged with rank 0
};

TEST_F(Turns, AreInTheOrderOfSending) {
  turns_.enter(kSecond);
  turns_.enter(kFirst);
  turns_.enter(kSecond);
  EXPECT_TRUE(may_send(kSecond));
  EXPECT_FALSE(may_send(kFirst));
  EXPECT_EQ(looks_asked_, 1);
  EXPECT_THAT(look(), IsEmpty());
  turns_.leave(kSecond);
  EXPECT_EQ(looks_asked_, 2);
  EXPECT_FALSE(may_send(kSecond)) << "its second one came after the first peer's";
  EXPECT_THAT(look(), ElementsAre(kFirst));
  EXPECT_TRUE(may_send(kFirst));
  turns_.leave(kFirst);
  EXPECT_THAT(look(), ElementsAre(kSecond));
}

TEST_F(Turns, LetBulkWaitForAllThatIsUrgent) {
  EXPECT_TRUE(may_send_bulk(kFirst));
  turns_.enter(kSecond);
  EXPECT_FALSE(may_send_bulk(kFirst));
  EXPECT_FALSE(may_send_bulk(kThird));
  turns_.leave(kSecond);
  EXPECT_THAT(look(), ElementsAre(kFirst, kThird));
  EXPECT_TRUE(may_send_bulk(kFirst));
  EXPECT_TRUE(may_send_bulk(kThird));
}

TEST_F(Turns, LastUntilTheMessageIsThere) {
  turns_.enter(kFirst);
  turns_.enter(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  sent_[kFirst.index()].on_the_way_bytes = 250'000;
  turns_.leave(kFirst);
  EXPECT_THAT(look(), IsEmpty());
  turns_.enter(kFirst);
  EXPECT_FALSE(may_send(kFirst)) << "the second peer's is older";
  EXPECT_FALSE(may_send_bulk(kThird));
  sent_[kFirst.index()].on_the_way_bytes = SendTurns::kHandOverBytesMin;
  EXPECT_THAT(look(), ElementsAre(kSecond));
  turns_.leave(kSecond);
  EXPECT_THAT(look(), ElementsAre(kFirst));
  turns_.leave(kFirst);
  EXPECT_THAT(look(), ElementsAre(kThird));
}

// The more it takes, the more of it may be on the way when the next begins.
TEST_F(Turns, GiveTheLinkWorkUntilTheNextLook) {
  turns_.enter(kFirst);
  turns_.enter(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  look();
  pass(100ms);
  sent_[kFirst.index()].on_the_way_bytes = kRate * 7000;
  turns_.leave(kFirst);
  EXPECT_THAT(look(), ElementsAre(kSecond));
}

TEST_F(Turns, LetBulkWaitForRoom) {
  const auto bulk = [&](std::uint64_t bytes) { return turns_.may_begin_bulk(kFirst, bytes); };
  EXPECT_EQ(bulk(1'000'000), Answer::kYes) << "nobody knows what the link takes";
  sent_[kFirst.index()] = {0, 1'000'000, 150'000};
  look();
  EXPECT_EQ(bulk(50'000), Answer::kNoRoom);
  EXPECT_EQ(looks_asked_, 1);
  EXPECT_TRUE(may_send_bulk(kSecond)) << "it has room of its own";
  turns_.enter(kFirst);
  EXPECT_TRUE(may_send(kFirst));
  turns_.leave(kFirst);
  sent_[kFirst.index()] = {950'000, 60'000, 150'000};
  EXPECT_THAT(look(), ElementsAre(kFirst));
  EXPECT_EQ(bulk(50'000), Answer::kYes);
  EXPECT_EQ(bulk(50'000), Answer::kYes);
  EXPECT_EQ(bulk(50'000), Answer::kNoRoom);
  EXPECT_THAT(look(), ElementsAre(kFirst)) << "as much is on the way as was then";
}

TEST_F(Turns, AreNotKeptForAPeerThatIsGone) {
  turns_.enter(kFirst);
  turns_.enter(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  turns_.leave_all(kFirst);
  EXPECT_EQ(looks_asked_, 2);
  EXPECT_THAT(look(), ElementsAre(kSecond));
}

TEST_F(Turns, NobodyAsksForLooksWhileNobodyWaits) {
  turns_.enter(kFirst);
  EXPECT_TRUE(may_send(kFirst));
  turns_.leave(kFirst);
  EXPECT_EQ(looks_asked_, 0);
}

TEST_F(Turns, PassOverAPeerThatTakesNothing) {
  turns_.enter(kFirst);
  turns_.enter(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  EXPECT_THAT(pass(45ms, 0), IsEmpty());
  EXPECT_THAT(pass(20ms, 0), ElementsAre(kSecond));
  EXPECT_TRUE(may_send(kFirst)) << "it may take more at any time";
  EXPECT_TRUE(may_send(kSecond));
}

TEST_F(Turns, PassOverAPeerThatTakesLessThanTheMachineCanSend) {
  const auto give_turns = [&](Rank to, std::uint64_t rate) {
    turns_.enter(to);
    turns_.enter(kThird);
    EXPECT_FALSE(may_send(kThird));
    look();
    const auto released = pass(100ms, rate);
    turns_.leave_all(to);
    turns_.leave_all(kThird);
    return released;
  };
  EXPECT_THAT(give_turns(kFirst, kRate), IsEmpty());
  EXPECT_THAT(give_turns(kFirst, kRate * 9 / 10), IsEmpty());
  EXPECT_THAT(give_turns(kSecond, kRate / 2), ElementsAre(kThird));
  EXPECT_THAT(give_turns(kFirst, kRate), IsEmpty()) << "others keep their turns";
}

TEST_F(Turns, ComeBackToAPeerThatWasPassedOver) {
  turns_.enter(kFirst);
  turns_.enter(kSecond);
  EXPECT_FALSE(may_send(kSecond));
  EXPECT_THAT(pass(60ms, 0), ElementsAre(kSecond));
  turns_.enter(kThird);
  EXPECT_FALSE(may_send(kThird));
  EXPECT_THAT(pass(SendTurns::kPassedOver, kRate), IsEmpty());
  EXPECT_FALSE(may_send(kSecond)) << "what is the first peer's is older";
}

// A machine of several peers, each of whom takes messages as fast as a link of its own lets it: all
// messages leave, no peer waits for nothing, and those to peers that fill the machine's link leave
// in the order of sending.
class PlayedNetwork {
 public:
  PlayedNetwork(std::vector<std::uint64_t> rates)
      : rates_(std::move(rates)),
        peers_(rates_.size()),
        turns_(static_cast<int>(rates_.size()), [] {}),
        sent_(rates_.size()) {}

  void send(std::size_t to, std::uint64_t bytes) {
    peers_[to].messages.emplace_back(next_++, bytes);
    turns_.enter(rank(to));
  }

  // Returns the numbers of the messages in the order in which they left.
  std::vector<std::size_t> run(std::size_t steps_max) {
    std::vector<std::size_t> left;
    for (std::size_t step = 0; step < steps_max && left.size() < next_; ++step) {
      begin();
      move(left);
      const auto seen = turns_.look(SteadyClock::time_point(1h + step * 5ms), sent_);
      for (const Rank released : seen.released) peers_[released.index()].waits = false;
    }
    return left;
  }

 private:
  struct Peer {
    std::deque<std::pair<std::size_t, std::uint64_t>> messages;  // number, bytes left
    bool has_begun = false;
    bool waits = false;
  };

  static Rank rank(std::size_t number) { return Rank{static_cast<std::int32_t>(number)}; }

  void begin() {
    for (std::size_t to = 0; to < peers_.size(); ++to) {
      Peer& peer = peers_[to];
      if (peer.messages.empty() || peer.has_begun || peer.waits) continue;
      peer.has_begun = turns_.may_begin_urgent(rank(to)) == Answer::kYes;
      peer.waits = !peer.has_begun;
    }
  }

  // What is left of the machine's link in 5 ms goes to who comes first.
  void move(std::vector<std::size_t>& left) {
    std::uint64_t room = kRate * 5000;
    for (std::size_t to = 0; to < peers_.size(); ++to) {
      Peer& peer = peers_[to];
      if (!peer.has_begun) continue;
      auto& [number, bytes] = peer.messages.front();
      const std::uint64_t moved = std::min({room, bytes, rates_[to] * 5000});
      room -= moved;
      bytes -= moved;
      sent_[to].acknowledged_bytes += moved;
      if (bytes > 0) continue;
      left.push_back(number);
      peer.messages.pop_front();
      peer.has_begun = false;
      turns_.leave(rank(to));
    }
  }

  std::vector<std::uint64_t> rates_;  // [peer], bytes a microsecond
  std::vector<Peer> peers_;
  SendTurns turns_;
  std::vector<SendTurns::Sent> sent_;  // [peer]
  std::size_t next_ = 0;
};

RC_GTEST_PROP(SendTurnsProperty, EverythingLeavesWhoeverIsSlow, ()) {
  const auto rates = *rc::gen::container<std::vector<std::uint64_t>>(
      static_cast<std::size_t>(*rc::gen::inRange(2, 6)),
      rc::gen::element<std::uint64_t>(1, 10, kRate / 2, kRate, kRate));
  PlayedNetwork network(rates);
  const int count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    network.send(*rc::gen::inRange<std::size_t>(0, rates.size()),
                 *rc::gen::inRange<std::uint64_t>(16'384, 4'000'000));
  }
  // Even one after the other at the slowest rate they would be through.
  RC_ASSERT(network.run(static_cast<std::size_t>(count) * 1000).size() ==
            static_cast<std::size_t>(count));
}

RC_GTEST_PROP(SendTurnsProperty, KeepTheOrderWhereEveryPeerFillsTheLink, ()) {
  const auto peers = *rc::gen::inRange<std::size_t>(2, 6);
  PlayedNetwork network(std::vector<std::uint64_t>(peers, kRate));
  const int count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    network.send(*rc::gen::inRange<std::size_t>(0, peers), 500'000);
  }
  const auto left = network.run(static_cast<std::size_t>(count) * 1000);
  RC_ASSERT(left.size() == static_cast<std::size_t>(count));
  RC_ASSERT(std::ranges::is_sorted(left));
}

}  // namespace
}  // namespace motley
