// Tickets, messages, admission: what needs no connection.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "cluster/join/head/admission.h"
#include "cluster/join/machine/file_receiver.h"
#include "cluster/join/machine/joined_command.h"
#include "cluster/join/shared_secret.h"
#include "plan/cluster/joined_shell.h"
#include "tests/fuzz/join_laws.h"
#include "tests/support/damage.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

rc::Gen<Ticket> tickets() {
  return rc::gen::exec([] {
    Ticket ticket;
    ticket.addresses = *rc::gen::resize(
        4, rc::gen::nonEmpty(
               rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                   "10.0.0.1", "192.168.178.22", "fd00::1", "::1", "2001:db8:1:2:3:4:5:6"))));
    ticket.port = *rc::gen::inRange<std::uint16_t>(1, 65535);
    ticket.expires_unix_s = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40);
    const auto digit = rc::gen::elementOf(std::string("0123456789abcdef"));
    ticket.fingerprint = *rc::gen::container<std::string>(64, digit);
    ticket.secret =
        *rc::gen::container<std::string>(kTicketSecretBytes, rc::gen::arbitrary<char>());
    return ticket;
  });
}

RC_GTEST_PROP(Ticket, IsTheSameAfterWritingAndReading, ()) {
  const Ticket ticket = *tickets();
  const std::string text = ticket_text(ticket);
  const auto read = parse_ticket("  " + text + "\r\n");
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == ticket);
  RC_ASSERT(text.find_first_of(" \t\n'\"\\$&;|<>()[]{}*?!#~`") == std::string::npos);
}

RC_GTEST_PROP(Ticket, CutAnywhereIsRefused, ()) {
  const std::string text = ticket_text(*tickets());
  const auto length = *rc::gen::inRange<std::size_t>(0, text.size());
  RC_ASSERT(!parse_ticket(text.substr(0, length)).ok());
}

RC_GTEST_PROP(DamagedTickets, AreRefusedOrReadAsWritten, ()) {
  RC_ASSERT(wrong_with_ticket(right_ticket()) == "");
  RC_ASSERT(wrong_with_ticket(damaged(right_ticket(), fragments_of_tickets())) == "");
}

RC_GTEST_PROP(DamagedJoinMessages, AreRefusedOrReadAsWritten, ()) {
  RC_ASSERT(wrong_with_join_messages(right_join_messages()) == "");
  RC_ASSERT(
      wrong_with_join_messages(damaged(right_join_messages(), fragments_of_join_messages())) == "");
}

TEST(JoinFrame, ArrivesInPieces) {
  JoinFrameReader reader;
  const std::string bytes = encode_frame({JoinKind::kOutput, 7, "words"});
  for (const char byte : bytes.substr(0, bytes.size() - 1)) {
    reader.add({&byte, 1});
    EXPECT_FALSE(reader.next(kJoinBytesMax)->has_value());
  }
  reader.add(bytes.substr(bytes.size() - 1));
  EXPECT_EQ(**reader.next(kJoinBytesMax), (JoinFrame{JoinKind::kOutput, 7, "words"}));
}

// The bytes of docs/formats/join.md.
TEST(JoinFrame, HasTheDocumentedBytes) {
  EXPECT_EQ(encode_frame({JoinKind::kInput, 258, "ab"}), std::string("\7\0\0\0\5\2\1\0\0ab", 11));
}

TEST(JoinFrame, LongerThanAllowedIsRefusedByItsLength) {
  JoinFrameReader reader;
  reader.add(
      encode_frame({JoinKind::kHello, 0, std::string(kGreetingBytesMax + 1, 'x')}).substr(0, 4));
  const auto refused = reader.next(kGreetingBytesMax);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kPeer);
}

constexpr double kNow_s = 1e9;

struct AdmissionTest : testing::Test {
  ProofContext context(const std::string& machine) const { return {"exported", "head", machine}; }

  Result<std::string> admit(const std::string& machine,
                            const std::string& secret,
                            double at_s = kNow_s,
                            const std::string& name = "box") {
    return admission_.admit(context(machine), ticket_proof(secret, context(machine)), name, at_s);
  }

  Admission admission_{"the secret", 2, kNow_s + 900, {"desk", "attic"}};
};

TEST_F(AdmissionTest, GivesEachMachineAPlaceAndAName) {
  EXPECT_EQ(*admit("k1", "the secret"), "box");
  EXPECT_EQ(*admit("k2", "the secret"), "box-2");
  EXPECT_EQ(admission_.places_left(), 0);
}

TEST_F(AdmissionTest, AvoidsTheNamesOfOtherMachines) {
  EXPECT_EQ(*admit("k1", "the secret", kNow_s, "desk"), "desk-2");
  EXPECT_EQ(*admit("k2", "the secret", kNow_s, "attic"), "attic-2");
}

TEST_F(AdmissionTest, RefusesAWrongSecretAndKeepsThePlace) {
  const auto refused = admit("k1", "another");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnauthorised);
  EXPECT_THAT(refused.error().cause, HasSubstr("secret"));
  EXPECT_EQ(admission_.places_left(), 2);
}

TEST_F(AdmissionTest, RefusesAProofOfAnotherConnectionOrMachine) {
  const std::string proof = ticket_proof("the secret", context("k1"));
  for (const ProofContext& other :
       {ProofContext{"exported anew", "head", "k1"}, ProofContext{"exported", "head", "k2"},
        ProofContext{"exported", "other head", "k1"}}) {
    EXPECT_FALSE(admission_.admit(other, proof, "box", kNow_s).ok());
  }
  EXPECT_TRUE(admission_.admit(context("k1"), proof, "box", kNow_s).ok());
}

TEST_F(AdmissionTest, RefusesAfterTheTicketHasExpired) {
  EXPECT_THAT(admit("k1", "the secret", kNow_s + 901).error().cause, HasSubstr("expired 1 s ago"));
}

TEST_F(AdmissionTest, RefusesATicketWhosePlacesAreTaken) {
  ASSERT_TRUE(admit("k1", "the secret").ok());
  ASSERT_TRUE(admit("k2", "the secret").ok());
  EXPECT_THAT(admit("k3", "the secret").error().cause, HasSubstr("2 machines, which have joined"));
}

TEST_F(AdmissionTest, GivesAMachineAPlaceForEachOfItsProcesses) {
  const std::string proof = ticket_proof("the secret", context("k1"));
  const auto refused = admission_.admit(context("k1"), proof, "box", kNow_s, 3);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().cause, HasSubstr("it has 3 processes"));
  EXPECT_TRUE(admission_.admit(context("k1"), proof, "box", kNow_s, 2).ok());
  EXPECT_EQ(admission_.places_left(), 0);
}

TEST(DerivedSecret, IsTheSameForAllWhoKnowTheSecretAndThePort) {
  const std::string secret = "sixteen bytes it";
  const auto head = derive_secret(secret, 29600);
  const auto machine = derive_secret(secret, 29600);
  ASSERT_TRUE(head.ok() && machine.ok());
  EXPECT_EQ(head->head.fingerprint(), machine->head.fingerprint());
  EXPECT_EQ(head->ticket_secret, machine->ticket_secret);
  EXPECT_EQ(head->ticket_secret.size(), kTicketSecretBytes);
  const auto other_port = derive_secret(secret, 29601);
  const auto other_secret = derive_secret("sixteen bytes is", 29600);
  ASSERT_TRUE(other_port.ok() && other_secret.ok());
  EXPECT_NE(other_port->head.fingerprint(), head->head.fingerprint());
  EXPECT_NE(other_secret->head.fingerprint(), head->head.fingerprint());
  EXPECT_NE(other_secret->ticket_secret, head->ticket_secret);
}

// docs/formats/join.md: computed by Python's hashlib and openssl pkey.
TEST(DerivedSecret, IsThatOfTheFormat) {
  const auto derived = derive_secret("sixteen bytes it", 29600);
  ASSERT_TRUE(derived.ok());
  EXPECT_EQ(to_hex(derived->ticket_secret), "d5df672028e5d8fec70a2b730fcbe39a");
  EXPECT_EQ(derived->head.fingerprint(),
            "fa291a19db365d09e7259f6e7ae031cbcf8b562c7d18829300e265a31b5ac218");
}

TEST(DerivedSecret, IsRefusedIfShortWithoutAQuotation) {
  const auto refused = derive_secret("fifteen bytes i", 29600);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_THAT(describe(refused.error()), Not(HasSubstr("fifteen")));
}

TEST_F(AdmissionTest, KnowsAMachineAgainByItsKeyAlone) {
  ASSERT_TRUE(admit("k1", "the secret").ok());
  EXPECT_EQ(*admit("k1", "", kNow_s + 1e6), "box");
  EXPECT_EQ(admission_.places_left(), 1);
}

TEST(NameInCluster, HasOnlyCharactersOfMachineNames) {
  EXPECT_EQ(name_in_cluster("anna.local"), "anna-local");
  EXPECT_EQ(name_in_cluster("--x"), "x");
  EXPECT_EQ(name_in_cluster("\xc3\xa4"), "machine");
  EXPECT_EQ(name_in_cluster(std::string(500, 'a')).size(), kJoinNameBytesMax);
}

TEST(JoinedOrder, StartsMotleysProgramsOnly) {
  EXPECT_THAT(
      joined_order({"work", "motley-stage", "2"}, "/opt/motley").argv,
      AllOf(testing::Contains("/opt/motley/motley-stage"), testing::Contains("OMP_NUM_THREADS=2")));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"work", "sh", "2"},
                                             {"work", "../motley-stage", "2"},
                                             {"work", "motley-stage", "-1"},
                                             {"work", "motley-stage", "2", "more"},
                                             {"sh", "-c", "true"},
                                             {"has", "/bin/sh"}}) {
    const JoinedOrder order = joined_order(words, "/opt/motley");
    EXPECT_THAT(order.argv, IsEmpty()) << words.front();
    EXPECT_THAT(order.answer.problem, Not(IsEmpty())) << words.front();
  }
}

TEST(JoinedShell, IsFoundInItsPrefixOnly) {
  const JoinedShell shell{"/bin/motley", "/tmp/head", "box", "/home/u/files"};
  const auto found = joined_shell(joined_prefix(shell));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->machine, "box");
  EXPECT_EQ(path_there(*found, "/data/a.txt"), "/home/u/files/data/a.txt");
  EXPECT_EQ(path_there(*found, ""), "");
  EXPECT_FALSE(joined_shell({"ssh", "box"}).has_value());
  EXPECT_FALSE(joined_shell({}).has_value());
}

TEST(PlacedPath, StaysBelowItsFolder) {
  EXPECT_EQ(*placed_path("/files", "/data/a.txt"), "/files/data/a.txt");
  for (const std::string& path :
       {std::string("data"), std::string("/a/../b"), std::string("/.."), std::string("/a/./b"),
        std::string("/a/"), std::string("//a"), std::string("/"), std::string("/a\0b", 4),
        "/" + std::string(2000, 'a')}) {
    EXPECT_FALSE(placed_path("/files", path).ok()) << path;
  }
}

}  // namespace
}  // namespace motley
