#include "comm/tcp/tcp_hello.h"

#include <array>
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/hex.h"

namespace motley {
namespace {

using testing::HasSubstr;

using HelloBytes = std::array<std::byte, kHelloBytes>;

constexpr Hello kExample{0x01020304, 5, Rank{3}, Rank{1}, true, {1234, 17, 0x0807060504030201}};

HelloBytes written(const Hello& hello) {
  HelloBytes bytes;
  write_hello(hello, bytes);
  return bytes;
}

void rehash(HelloBytes& bytes) {
  const std::uint64_t hash = hash64(std::span(bytes).first(kHelloBytes - sizeof(std::uint64_t)));
  std::memcpy(bytes.data() + kHelloBytes - sizeof hash, &hash, sizeof hash);
}

// The example of docs/formats/tcp.md.
TEST(TcpHello, HasTheDocumentedBytes) {
  const HelloBytes bytes = written(kExample);
  EXPECT_EQ(to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
            "4d544c48"  // MTLH
            "06000100"  // version, local
            "04030201"  // epoch
            "05000000"  // ranks
            "03000000"  // from
            "01000000"  // to
            "d2040000"  // the memory's process
            "11000000"  // and file
            "0102030405060708"
            "bc9f4957117d4063");
}

TEST(TcpHello, ReadsBack) {
  const auto hello = read_hello(written(kExample));
  ASSERT_TRUE(hello.ok()) << describe(hello.error());
  EXPECT_EQ(*hello, kExample);
}

TEST(TcpHello, RefusesEveryFlippedBit) {
  for (std::size_t bit = 0; bit < 8 * kHelloBytes; ++bit) {
    HelloBytes bytes = written(kExample);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto hello = read_hello(bytes);
    ASSERT_FALSE(hello.ok()) << bit;
    EXPECT_EQ(hello.error().code, ErrorCode::kCorrupt);
  }
}

TEST(TcpHello, RefusesAnotherVersionByName) {
  HelloBytes bytes = written(kExample);
  bytes[4] = std::byte{7};
  rehash(bytes);
  const auto hello = read_hello(bytes);
  ASSERT_FALSE(hello.ok());
  EXPECT_THAT(hello.error().cause, HasSubstr("version 7"));
}

TEST(TcpHello, ReadsBackWhetherTheTwoAreOnOneMachine) {
  for (const bool local : {false, true}) {
    Hello said = kExample;
    said.local = local;
    EXPECT_EQ(read_hello(written(said))->local, local);
  }
}

TEST(TcpHello, RefusesWhatIsNeitherLocalNorNot) {
  for (const auto& [at, value] : {std::pair{6, 2}, {6, 3}, {7, 1}}) {
    HelloBytes bytes = written(kExample);
    bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    rehash(bytes);
    const auto hello = read_hello(bytes);
    ASSERT_FALSE(hello.ok()) << at;
    EXPECT_THAT(hello.error().cause, HasSubstr("flag for the same machine"));
  }
}

// The error that rank 1 of five in epoch 7 gives.
std::string refusal(const Hello& theirs) {
  const auto checked = check_hello(theirs, {7, 5, Rank{1}, Rank{}});
  return checked.ok() ? "" : checked.error().cause;
}

TEST(TcpHello, IsAcceptedFromAnotherRankOfTheGroup) {
  for (const int from : {0, 2, 3, 4}) EXPECT_EQ(refusal({7, 5, Rank{from}, Rank{1}}), "") << from;
}

TEST(TcpHello, NamesWhatIsWrong) {
  EXPECT_THAT(refusal({8, 5, Rank{3}, Rank{1}}), HasSubstr("epoch is 8"));
  EXPECT_THAT(refusal({7, 4, Rank{3}, Rank{1}}), HasSubstr("4 ranks"));
  EXPECT_THAT(refusal({7, 5, Rank{3}, Rank{2}}), HasSubstr("for rank 2"));
  EXPECT_THAT(refusal({7, 5, Rank{1}, Rank{1}}), HasSubstr("sender is rank 1"));
  EXPECT_THAT(refusal({7, 5, Rank{5}, Rank{1}}), HasSubstr("sender is rank 5"));
  EXPECT_THAT(refusal({7, 5, Rank{-1}, Rank{1}}), HasSubstr("sender is rank -1"));
}

}  // namespace
}  // namespace motley
