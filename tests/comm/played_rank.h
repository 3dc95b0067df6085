// Rank 1 of two on one machine, emulated by the test: it has the secret, and the test determines
// what it sends.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "comm/local_messages.h"
#include "comm/stranger.h"
#include "comm/tcp/derived_key.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tls_session.h"
#include "comm/transport/message_stream.h"

namespace motley {

class PlayedSecretRank : public testing::Test {
 protected:
  void shake_hands() {
    for (bool done = false; !done;) {
      const auto outcome = tls_->handshake();
      ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
      done = *outcome;
      rank1_.say(taken());
      if (!done) hear_more();
    }
  }

  // Takes the bytes that TLS wants to send.
  std::vector<std::byte> taken() {
    const auto outgoing = tls_->outgoing();
    std::vector<std::byte> bytes(outgoing.begin(), outgoing.end());
    tls_->sent(bytes.size());
    return bytes;
  }

  std::vector<std::byte> encrypted(std::span<const std::byte> bytes) {
    EXPECT_EQ(*tls_->write(bytes), bytes.size());
    return taken();
  }

  void hear_more() {
    const auto space = tls_->space();
    const ssize_t count = ::recv(rank1_.fd(), space.data(), space.size(), 0);
    ASSERT_GT(count, 0);
    tls_->received(static_cast<std::size_t>(count));
  }

  Hello hear_hello() {
    std::array<std::byte, kHelloBytes> bytes;
    for (std::size_t heard = 0; heard < kHelloBytes;) {
      const auto count = tls_->read(std::span(bytes).subspan(heard));
      EXPECT_TRUE(count.ok()) << describe(count.error());
      if (!count.ok()) return {};
      heard += *count;
      if (*count == 0) hear_more();
    }
    return *read_hello(bytes);
  }

  static std::vector<std::byte> hello(bool local, const MemoryOffer& memory = {}) {
    std::array<std::byte, kHelloBytes> bytes;
    write_hello({1, 2, kRank1, kRank0, local, memory}, bytes);
    return {bytes.begin(), bytes.end()};
  }

  // In wire format: header and message.
  static std::vector<std::byte> said_message() {
    Buffer buffer = message(kPayloadBytes, 7);
    std::array<std::byte, kStreamHeaderBytes> header;
    write_stream_header(1, buffer.message().size(), header);
    std::vector<std::byte> bytes(header.begin(), header.end());
    std::ranges::copy(buffer.message(), std::back_inserter(bytes));
    return bytes;
  }

  void expect_message() {
    auto came = acceptor_->recv(kRank1, 1, Buffer(kPayloadBytes)).wait(soon(), "a message");
    EXPECT_TRUE(is_message(came, kPayloadBytes, 7));
  }

  void expect_lost(const std::string& cause) {
    const auto came = acceptor_->recv(kRank1, 1, Buffer(kPayloadBytes)).wait(soon(), "a message");
    ASSERT_FALSE(came.ok());
    EXPECT_EQ(came.error().code, ErrorCode::kPeer);
    EXPECT_THAT(came.error().cause, testing::HasSubstr(cause));
  }

  static std::unique_ptr<TlsSession> new_session() {
    const std::string purpose = "motley data, epoch 1";
    auto key = derive_key(options_of("local", kRank1).secret, purpose);
    return std::make_unique<TlsSession>(*TlsContext::make(std::move(key).value(), purpose),
                                        TlsSession::Role::kClient);
  }

  std::unique_ptr<Transport> acceptor_ =
      std::move(make_transport(options_of("local", kRank0))).value();
  Stranger rank1_{acceptor_->address()};
  std::unique_ptr<TlsSession> tls_ = new_session();
};

inline std::vector<std::byte> joined(std::vector<std::byte> first,
                                     const std::vector<std::byte>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace motley
