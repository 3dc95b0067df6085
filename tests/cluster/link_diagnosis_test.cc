// Conclusions from the ranks' reports about both ends of each link.
#include "cluster/reach/link_diagnosis.h"

#include <fmt/format.h>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

// Three ranks on m1, m2 and m3, at 10.0.0.1 and so on.
class ThreeRanks : public testing::Test {
 protected:
  void report(int from, int to, LinkState state, double since_s, const std::string& words = "") {
    ends_[static_cast<std::size_t>(from) - 1].unreached.push_back(
        {Rank{to - 1}, fmt::format("10.0.0.{}:4000{}", to, to), state, words, since_s});
  }

  void silent(int from, int to, double since_s = 5) {
    report(from, to, LinkState::kSilent, since_s);
  }

  void refused(int from, int to, double since_s = 1.5) {
    report(from, to, LinkState::kRefused, since_s, "Connection refused");
  }

  [[nodiscard]] PeerFailure verdict() const {
    const auto found = diagnose_link(ends_);
    EXPECT_TRUE(found);
    return found.value_or(PeerFailure{});
  }

  std::vector<LinkEnd> ends_ = {{.machine = "m1"}, {.machine = "m2"}, {.machine = "m3"}};
};

TEST_F(ThreeRanks, AreAllRightWithoutReports) {
  EXPECT_FALSE(diagnose_link(ends_));
}

// A lost packet, or a firewall at one end: the other end connects within a moment.
TEST_F(ThreeRanks, AreNotApartByOneDirectionOrForAMoment) {
  silent(3, 2);
  EXPECT_FALSE(diagnose_link(ends_));
  silent(2, 3, 1);
  EXPECT_FALSE(diagnose_link(ends_));
  report(2, 1, LinkState::kAnswers, 100);
  report(1, 2, LinkState::kAnswers, 100);
  EXPECT_FALSE(diagnose_link(ends_));
}

TEST_F(ThreeRanks, NameTheMachineThatIsPartOfAllDeadLinks) {
  silent(2, 1);
  silent(1, 2);
  silent(3, 2);
  silent(2, 3);
  const PeerFailure failure = verdict();
  EXPECT_EQ(failure.error.code, ErrorCode::kPeer);
  EXPECT_EQ(failure.error.what,
            "m2 accepts no connections from m1, m3, and cannot connect to them");
  EXPECT_THAT(failure.error.cause, AllOf(HasSubstr("m1 to m2 at 10.0.0.2:40002: no answer for 5 s"),
                                         HasSubstr("m2 to m3 at 10.0.0.3:40003: no answer"),
                                         HasSubstr("a firewall there")));
  EXPECT_THAT(failure.error.remedy,
              AllOf(HasSubstr("on m2 'sudo ufw allow from 10.0.0.1' and 'sudo ufw allow from "
                              "10.0.0.3'"),
                    Not(HasSubstr("ssh"))));
  EXPECT_THAT(failure.fault.machines, ElementsAre("m2"));
  EXPECT_TRUE(failure.fault.cannot_connect);
}

TEST_F(ThreeRanks, NameBothOfAPairAndWhatCameOfEachDirection) {
  refused(3, 2);
  report(2, 3, LinkState::kNoRoute, 2, "No route to host");
  const PeerFailure failure = verdict();
  EXPECT_EQ(failure.error.what, "m2 and m3 cannot connect to each other");
  EXPECT_THAT(failure.error.cause,
              AllOf(HasSubstr("m3 to m2 at 10.0.0.2:40002: Connection refused"),
                    HasSubstr("m2 to m3 at 10.0.0.3:40003: No route to host")));
  EXPECT_THAT(failure.fault.machines, ElementsAre("m2", "m3"));
}

TEST_F(ThreeRanks, NameAllPairsWhereNoMachineExplainsThem) {
  for (const auto& [a, b] : {std::pair{1, 2}, {1, 3}, {2, 3}}) {
    refused(a, b);
    refused(b, a);
  }
  const PeerFailure failure = verdict();
  EXPECT_THAT(failure.error.what, HasSubstr("m1 and m2, m1 and m3, m2 and m3"));
  EXPECT_THAT(failure.fault.machines, UnorderedElementsAre("m1", "m2", "m3"));
}

TEST_F(ThreeRanks, NameAMachineThatNobodyHears) {
  ends_[1].is_heard = false;
  silent(3, 2);
  silent(1, 2);
  const PeerFailure failure = verdict();
  EXPECT_THAT(failure.error.what, HasSubstr("machine m2 was lost"));
  EXPECT_THAT(failure.fault.machines, ElementsAre("m2"));
  EXPECT_FALSE(failure.fault.cannot_connect);
}

TEST_F(ThreeRanks, TellOfWhatOneEndCouldNotDo) {
  EXPECT_THAT(one_way_lines(ends_), IsEmpty());
  silent(3, 2, 1);
  report(2, 1, LinkState::kAnswers, 1);
  EXPECT_THAT(one_way_lines(ends_),
              ElementsAre(HasSubstr("m3 could not connect to m2 at 10.0.0.2:40002 (no answer")));
}

TEST(LinkVerdict, KnowsRanksOfOneMachineByOneDirection) {
  const std::vector<LinkEnd> ends = {
      {.machine = "m1"},
      {.machine = "m1", .unreached = {{Rank{0}, "10.0.0.1:1", LinkState::kRefused, "", 2}}}};
  EXPECT_THAT(diagnose_link(ends)->error.what, HasSubstr("processes on m1 cannot connect"));
}

}  // namespace
}  // namespace motley
