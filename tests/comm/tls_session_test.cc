// Two TLS sessions connected through memory buffers, and attacks by a man in the middle.
#include "comm/tcp/tls_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/hex.h"
#include "base/secret.h"
#include "comm/tcp/derived_key.h"
#include "support/property.h"

namespace motley {
namespace {

using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

std::shared_ptr<const TlsContext> context(char key, const std::string& identity) {
  auto made = TlsContext::make(std::string(kSecretBytes, key), identity);
  if (!made.ok()) ADD_FAILURE() << describe(made.error());
  return std::move(made).value();
}

Bytes pattern(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// Takes all bytes that `from` wants to send.
Bytes taken_from(TlsSession& from) {
  const auto outgoing = from.outgoing();
  Bytes bytes(outgoing.begin(), outgoing.end());
  from.sent(bytes.size());
  return bytes;
}

// REQUIRES: `to` has space for them.
void give(TlsSession& to, const Bytes& bytes) {
  ASSERT_GE(to.space().size(), bytes.size());
  std::ranges::copy(bytes, to.space().begin());
  to.received(bytes.size());
}

class Pair {
 public:
  Pair(const std::shared_ptr<const TlsContext>& client,
       const std::shared_ptr<const TlsContext>& server,
       std::uint64_t rekey_bytes = 1ULL << 40)
      : client_(client, TlsSession::Role::kClient, rekey_bytes),
        server_(server, TlsSession::Role::kServer, rekey_bytes) {}

  // Whether both ends completed the handshake; otherwise the first error.
  Result<bool> shake_hands() {
    constexpr int kRoundsMax = 10;
    bool client_done = false;
    bool server_done = false;
    for (int round = 0; round < kRoundsMax && !(client_done && server_done); ++round) {
      if (!client_done) {
        MOTLEY_ASSIGN(client_done, client_.handshake());
      }
      give(server_, taken_from(client_));
      if (!server_done) {
        MOTLEY_ASSIGN(server_done, server_.handshake());
      }
      give(client_, taken_from(server_));
    }
    return client_done && server_done;
  }

  // Sends `message` from the client to the server, through queues much smaller than it.
  Result<Bytes> carry(const Bytes& message) {
    std::span<const std::byte> left = message;
    Bytes came;
    Bytes piece(50'000);
    while (came.size() < message.size()) {
      if (!left.empty()) {
        MOTLEY_ASSIGN(const std::size_t count, client_.write(left));
        left = left.subspan(count);
      }
      if (left.empty() && client_.outgoing().empty()) break;
      const std::size_t moved = std::min(client_.outgoing().size(), server_.space().size());
      std::memcpy(server_.space().data(), client_.outgoing().data(), moved);
      server_.received(moved);
      client_.sent(moved);
      for (;;) {
        MOTLEY_ASSIGN(const std::size_t count, server_.read(piece));
        if (count == 0) break;
        came.insert(came.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
      }
    }
    return came;
  }

  TlsSession& client() { return client_; }

  TlsSession& server() { return server_; }

 private:
  TlsSession client_;
  TlsSession server_;
};

Pair connected_pair(std::uint64_t rekey_bytes = 1ULL << 40) {
  return {context('k', "epoch 1"), context('k', "epoch 1"), rekey_bytes};
}

TEST(TlsSession, CarriesBytesOfEveryLength) {
  auto pair = connected_pair();
  const auto done = pair.shake_hands();
  ASSERT_TRUE(done.ok() && *done);
  for (const std::size_t count : {1, 16, 16'384, 16'385, 1'000'003}) {
    const auto came = pair.carry(pattern(count));
    ASSERT_TRUE(came.ok()) << describe(came.error());
    EXPECT_EQ(*came, pattern(count)) << count;
  }
}

TEST(TlsSession, GoesOnWithANewKey) {
  auto pair = connected_pair(/*rekey_bytes=*/20'000);
  ASSERT_TRUE(*pair.shake_hands());
  const auto came = pair.carry(pattern(1'000'000));
  ASSERT_TRUE(came.ok()) << describe(came.error());
  EXPECT_EQ(*came, pattern(1'000'000));
}

// Both ends change keys while data arrives from the other and their own waits for space.
TEST(TlsSession, GoesOnWithNewKeysInBothDirectionsAtOnce) {
  auto pair = connected_pair(/*rekey_bytes=*/20'000);
  ASSERT_TRUE(*pair.shake_hands());
  const Bytes message = pattern(600'000);

  struct End {
    TlsSession& session;
    TlsSession& other;
    std::span<const std::byte> left;
    Bytes came;
  };

  std::array ends = {End{pair.client(), pair.server(), message, {}},
                     End{pair.server(), pair.client(), message, {}}};
  Bytes piece(7'000);
  for (int round = 0; round < 10'000; ++round) {
    for (End& end : ends) {
      for (std::size_t count = 1; count > 0 && !end.left.empty();) {
        const auto taken = end.session.write(end.left);
        ASSERT_TRUE(taken.ok()) << describe(taken.error());
        count = *taken;
        end.left = end.left.subspan(count);
      }
      const std::size_t moved =
          std::min({std::size_t{1'000}, end.session.outgoing().size(), end.other.space().size()});
      std::memcpy(end.other.space().data(), end.session.outgoing().data(), moved);
      end.other.received(moved);
      end.session.sent(moved);
      const auto count = end.session.read(piece);
      ASSERT_TRUE(count.ok()) << describe(count.error());
      end.came.insert(end.came.end(), piece.begin(),
                      piece.begin() + static_cast<std::ptrdiff_t>(*count));
    }
  }
  for (const End& end : ends) EXPECT_EQ(end.came, message);
}

TEST(TlsSession, DoesNotShowWhatItCarries) {
  auto pair = connected_pair();
  ASSERT_TRUE(*pair.shake_hands());
  const Bytes plain = pattern(1000);
  ASSERT_EQ(*pair.client().write(plain), plain.size());
  const Bytes wire = taken_from(pair.client());
  EXPECT_GT(wire.size(), plain.size());
  EXPECT_EQ(std::ranges::search(wire, std::span(plain).first(16)).begin(), wire.end());
}

TEST(TlsSession, NeedsTheSameKey) {
  Pair pair(context('k', "epoch 1"), context('x', "epoch 1"));
  const auto done = pair.shake_hands();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kPeer);
  EXPECT_THAT(done.error().cause, HasSubstr("TLS handshake failed"));
}

TEST(TlsSession, NeedsTheSameIdentity) {
  Pair pair(context('k', "epoch 1"), context('k', "epoch 2"));
  EXPECT_FALSE(pair.shake_hands().ok());
}

TEST(TlsSession, TakesNothingThatWasChangedOnTheWay) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{3}, std::size_t{5}, std::size_t{700}}) {
    auto pair = connected_pair();
    ASSERT_TRUE(*pair.shake_hands());
    ASSERT_EQ(*pair.client().write(pattern(1000)), 1000U);
    Bytes wire = taken_from(pair.client());
    wire[at] ^= std::byte{1};
    give(pair.server(), wire);
    Bytes plain(1000);
    const auto came = pair.server().read(plain);
    EXPECT_TRUE(!came.ok() || *came == 0) << at;  // 0: the session waits for the rest of a record
  }
}

TEST(TlsSession, TakesNothingTwice) {
  auto pair = connected_pair();
  ASSERT_TRUE(*pair.shake_hands());
  ASSERT_EQ(*pair.client().write(pattern(1000)), 1000U);
  const Bytes wire = taken_from(pair.client());
  Bytes plain(1000);
  give(pair.server(), wire);
  ASSERT_EQ(*pair.server().read(plain), 1000U);
  give(pair.server(), wire);
  EXPECT_FALSE(pair.server().read(plain).ok());
}

// A recorded handshake with one server is useless with another.
TEST(TlsSession, AcceptsNoHandshakeTwice) {
  auto pair = connected_pair();
  std::vector<Bytes> recorded;
  bool client_done = false;
  bool server_done = false;
  while (!client_done || !server_done) {
    if (!client_done) client_done = *pair.client().handshake();
    recorded.push_back(taken_from(pair.client()));
    give(pair.server(), recorded.back());
    if (!server_done) server_done = *pair.server().handshake();
    give(pair.client(), taken_from(pair.server()));
  }
  TlsSession fresh(context('k', "epoch 1"), TlsSession::Role::kServer);
  bool refused = false;
  for (const Bytes& bytes : recorded) {
    give(fresh, bytes);
    const auto done = fresh.handshake();
    refused = refused || !done.ok();
    if (!refused) {
      ASSERT_FALSE(*done);
    }
    (void)taken_from(fresh);
  }
  EXPECT_TRUE(refused);
}

RC_GTEST_PROP(TlsSessionProperty,
              AServerAdmitsNobodyWhoSendsRandomBytes,
              (const std::string& bytes)) {
  TlsSession server(context('k', "epoch 1"), TlsSession::Role::kServer);
  const auto raw = std::as_bytes(std::span(bytes));
  const std::size_t count = std::min(raw.size(), server.space().size());
  std::copy_n(raw.begin(), count, server.space().begin());
  server.received(count);
  const auto done = server.handshake();
  const bool is_admitted = done.ok() && *done;
  RC_ASSERT(!is_admitted);
}

TEST(DerivedKey, IsHkdfWithSha256) {
  std::string secret(kSecretBytes, '\0');
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<char>(i);
  const auto key = derive_key(secret, "motley data, epoch 7");
  ASSERT_TRUE(key.ok()) << describe(key.error());
  // Computed with Python's hmac: HMAC(HMAC(32 zeros, secret), purpose + 0x01).
  EXPECT_EQ(to_hex(*key), "05aa191ca16350eb0ae9892afd29761ce83d3ed01e19f29f35ad51d4406a3f97");
  EXPECT_NE(*key, *derive_key(secret, "motley data, epoch 8"));
}

}  // namespace
}  // namespace motley
