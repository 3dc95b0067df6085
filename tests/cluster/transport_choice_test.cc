#include "cluster/launch/transport_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/secret.h"

namespace motley {
namespace {

using testing::HasSubstr;

struct Place {
  bool network = true;
  bool trusted = false;
};

Result<TransportChoice> choose(const Place& location,
                               const std::string& transport,
                               const std::string& encrypt = "auto") {
  Cluster cluster;
  cluster.trusted = location.trusted;
  for (const char* name : {"a", "b"}) {
    Machine machine;
    machine.name = name;
    if (location.network) machine.address = std::string("10.0.0.") + name;
    cluster.machines.push_back(machine);
  }
  CommConfig comm;
  comm.transport = transport;
  comm.encrypt = encrypt;
  return choose_transport(cluster, {"a", "b"}, comm);
}

// The kind, with " + TLS" if it encrypts or " + secret" if ranks only authenticate; or "refused".
std::string chosen(const Place& location,
                   const std::string& transport,
                   const std::string& encrypt) {
  const auto choice = choose(location, transport, encrypt);
  if (choice.ok()) {
    const std::string secret = choice->encrypts() ? " + TLS" : " + secret";
    return choice->kind + (choice->has_secret ? secret : "");
  }
  EXPECT_EQ(choice.error().code, ErrorCode::kConfig);
  return "refused";
}

constexpr Place kOpen{true, false};
constexpr Place kTrusted{true, true};
constexpr Place kHere{false, false};

TEST(TransportChoice, EncryptsBetweenMachinesThatOthersReach) {
  EXPECT_EQ(chosen(kOpen, "auto", "auto"), "tcp + TLS");
  EXPECT_EQ(chosen(kOpen, "auto", "always"), "tcp + TLS");
  EXPECT_EQ(chosen(kOpen, "auto", "never"), "refused");
  EXPECT_EQ(chosen(kOpen, "tcp", "auto"), "tcp + TLS");
  EXPECT_EQ(chosen(kOpen, "tcp", "never"), "refused");
  for (const char* plain : {"ucx", "gloo"}) {
    for (const char* encrypt : {"auto", "always", "never"}) {
      EXPECT_EQ(chosen(kOpen, plain, encrypt), "refused") << plain << " " << encrypt;
    }
  }
}

TEST(TransportChoice, TakesWhatIsNamedWhereTheNetworkIsTrusted) {
  EXPECT_EQ(chosen(kTrusted, "auto", "auto"), "tcp");
  EXPECT_EQ(chosen(kTrusted, "auto", "always"), "tcp + TLS");
  EXPECT_EQ(chosen(kTrusted, "ucx", "auto"), "ucx");
  EXPECT_EQ(chosen(kTrusted, "gloo", "never"), "gloo");
  EXPECT_EQ(chosen(kTrusted, "gloo", "always"), "refused");
  EXPECT_EQ(chosen(kTrusted, "tcp", "auto"), "tcp");
  EXPECT_EQ(chosen(kTrusted, "tcp", "always"), "tcp + TLS");
}

TEST(TransportChoice, TakesTcpOnOneMachineAndLetsNobodyElseIn) {
  EXPECT_EQ(chosen(kHere, "auto", "auto"), "tcp + secret");
  EXPECT_EQ(chosen(kHere, "auto", "always"), "tcp + TLS");
  EXPECT_EQ(chosen(kHere, "auto", "never"), "tcp");
  EXPECT_EQ(chosen(kHere, "tcp", "auto"), "tcp + secret");
  EXPECT_EQ(chosen(kHere, "tcp", "always"), "tcp + TLS");
  EXPECT_EQ(chosen(kHere, "tcp", "never"), "tcp");
  EXPECT_EQ(chosen(kHere, "ucx", "auto"), "ucx");
  EXPECT_EQ(chosen(kHere, "ucx", "always"), "refused");
}

// Whether the network is trusted does not matter on one machine.
TEST(TransportChoice, IsTheSameForOneMachineOfATrustedNetwork) {
  Cluster cluster;
  cluster.trusted = true;
  cluster.machines.resize(1);
  cluster.machines[0].name = "a";
  cluster.machines[0].address = "10.0.0.1";
  const auto choice = choose_transport(cluster, {"a"}, {});
  ASSERT_TRUE(choice.ok()) << describe(choice.error());
  EXPECT_EQ(choice->kind, "tcp");
  EXPECT_TRUE(choice->has_secret);
  EXPECT_FALSE(choice->encrypts());
}

TEST(TransportChoice, ClosesTheShortWayOnlyWhereAllIsToBeEncrypted) {
  for (const Place& location : {kOpen, kTrusted, kHere}) {
    EXPECT_TRUE(choose(location, "auto")->local_shortcut);
    EXPECT_FALSE(choose(location, "auto", "always")->local_shortcut);
  }
}

TEST(TransportChoice, SaysWhy) {
  EXPECT_EQ(choose(kOpen, "auto")->reason,
            "transport tcp with TLS 1.3 between machines: the network is not declared trusted");
  EXPECT_EQ(choose(kTrusted, "auto")->reason,
            "transport tcp, unencrypted: the network is declared trusted");
  EXPECT_EQ(choose(kHere, "auto")->reason,
            "transport tcp, unencrypted: all ranks are on this machine");
  EXPECT_THAT(choose(kHere, "auto", "never")->reason, HasSubstr("transport tcp, unencrypted: all"));
  EXPECT_THAT(choose(kHere, "ucx")->reason, HasSubstr("all ranks are on this machine"));
  const auto refused = choose(kOpen, "ucx");
  EXPECT_THAT(refused.error().remedy, HasSubstr("trusted = true"));
}

TEST(TransportChoice, RefusesWordsThatMeanNothing) {
  const auto pigeon = choose(kHere, "pigeon");
  ASSERT_FALSE(pigeon.ok());
  EXPECT_THAT(pigeon.error().what, HasSubstr("comm.transport is 'pigeon'"));
  EXPECT_FALSE(choose(kHere, "auto", "sometimes").ok());
}

TEST(TransportChoice, NeedsAnAddressForEachMachine) {
  Cluster cluster;
  cluster.machines.resize(2);
  cluster.machines[0].name = "a";
  cluster.machines[0].address = "10.0.0.1";
  cluster.machines[1].name = "b";
  const auto choice = choose_transport(cluster, {"a", "b"}, {});
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.error().what, HasSubstr("machine b has no address"));
  EXPECT_TRUE(choose_transport(cluster, {"a"}, {}).ok());
}

// The result of choose_transport() for a place.
TransportChoice choice_for(const Place& location, const std::string& encrypt) {
  return *choose(location, "auto", encrypt);
}

TEST(ApplyTransport, GivesAllRanksOneSecretAndEveryLaunchItsOwn) {
  std::vector<WorkerSpec> workers(2);
  ASSERT_TRUE(apply_transport(choice_for(kOpen, "auto"), workers).ok());
  EXPECT_EQ(workers[0].job.config.comm.transport, "tcp");
  const std::string first = workers[0].job.secret;
  EXPECT_EQ(first.size(), kSecretBytes);
  EXPECT_EQ(workers[1].job.secret, first);
  ASSERT_TRUE(apply_transport(choice_for(kOpen, "auto"), workers).ok());
  EXPECT_NE(workers[0].job.secret, first);
}

TEST(ApplyTransport, MakesNoSecretWhereNobodyElseIs) {
  std::vector<WorkerSpec> workers(1);
  ASSERT_TRUE(apply_transport(choice_for(kTrusted, "auto"), workers).ok());
  EXPECT_EQ(workers[0].job.config.comm.transport, "tcp");
  EXPECT_EQ(workers[0].job.secret, "");
}

TEST(ApplyTransport, TellsTheRanksWhetherTheShortWayIsOpen) {
  std::vector<WorkerSpec> workers(1);
  ASSERT_TRUE(apply_transport(choice_for(kHere, "always"), workers).ok());
  EXPECT_FALSE(workers[0].job.local_shortcut);
  ASSERT_TRUE(apply_transport(choice_for(kHere, "auto"), workers).ok());
  EXPECT_TRUE(workers[0].job.local_shortcut);
}

}  // namespace
}  // namespace motley
