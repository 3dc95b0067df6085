// Arbitrary bytes for both ends of TLS, and valid bytes with changes in transit: three bytes of an
// input are a position in the stream and the bits to flip there. A peer without the key is never
// accepted, and the data read is the data written.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/secret.h"
#include "comm/tcp/tls_session.h"

namespace motley {
namespace {

using Bytes = std::span<const std::byte>;
using Role = TlsSession::Role;

std::shared_ptr<const TlsContext> context() {
  static const auto made = TlsContext::make(std::string(kSecretBytes, 'k'), "epoch 1");
  MOTLEY_CHECK(made.ok(), "{}", describe(made.error()));
  return *made;
}

void check_error(const Error& error) {
  const bool known = error.code == ErrorCode::kPeer || error.code == ErrorCode::kUnauthorised;
  MOTLEY_CHECK(known && !error.cause.empty(), "{}", describe(error));
}

// The sender of these bytes does not have the key.
void say_to(Role role, Bytes bytes) {
  TlsSession session(context(), role);
  while (!bytes.empty()) {
    const auto space = session.space();
    const std::size_t count = std::min(space.size(), bytes.size());
    if (count == 0) return;  // it cannot read on, because the input is not a complete record
    std::ranges::copy(bytes.first(count), space.begin());
    session.received(count);
    bytes = bytes.subspan(count);
    const auto proved = session.handshake();
    if (!proved.ok()) return check_error(proved.error());
    MOTLEY_CHECK(!*proved, "a stranger was let in");
    session.sent(session.outgoing().size());
  }
}

// A man in the middle, which changes the bytes that it forwards.
class Meddler {
 public:
  explicit Meddler(Bytes orders) : orders_(orders) {}

  // Forwards everything that `from` wants to send; false if it is more than `to` accepts.
  bool carry(TlsSession& from, TlsSession& to) {
    const Bytes outgoing = from.outgoing();
    std::vector<std::byte> passing(outgoing.begin(), outgoing.end());
    from.sent(outgoing.size());
    for (Bytes left = orders_; left.size() >= 3; left = left.subspan(3)) {
      std::uint16_t place = 0;
      std::memcpy(&place, left.data(), sizeof place);
      if (place < passed_ || place >= passed_ + passing.size()) continue;
      passing[place - passed_] ^= left[2];
    }
    passed_ += passing.size();
    if (passing.size() > to.space().size()) return false;
    std::ranges::copy(passing, to.space().begin());
    to.received(passing.size());
    return true;
  }

 private:
  Bytes orders_;
  std::size_t passed_ = 0;
};

void meddle(Bytes orders) {
  constexpr int kRounds = 6;
  const std::vector<std::byte> said(3000, std::byte{0x5A});
  TlsSession client(context(), Role::kClient);
  TlsSession server(context(), Role::kServer);
  Meddler meddler(orders);
  bool client_proved = false;
  bool server_proved = false;
  std::size_t written = 0;
  std::vector<std::byte> heard;
  for (int round = 0; round < kRounds; ++round) {
    if (!client_proved) {
      const auto proved = client.handshake();
      if (!proved.ok()) return check_error(proved.error());
      client_proved = *proved;
    }
    if (client_proved && written < said.size()) {
      const auto count = client.write(Bytes(said).subspan(written));
      if (!count.ok()) return check_error(count.error());
      written += *count;
    }
    if (!meddler.carry(client, server)) return;
    if (!server_proved) {
      const auto proved = server.handshake();
      if (!proved.ok()) return check_error(proved.error());
      server_proved = *proved;
    }
    std::vector<std::byte> piece(5000);
    while (server_proved) {
      const auto count = server.read(piece);
      if (!count.ok()) return check_error(count.error());
      if (*count == 0) break;
      heard.insert(heard.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*count));
      MOTLEY_CHECK(
          heard.size() <= said.size() && std::equal(heard.begin(), heard.end(), said.begin()),
          "the server read what was never written");
    }
    if (!meddler.carry(server, client)) return;
  }
}

}  // namespace
}  // namespace motley

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (static_cast<unsigned char>(*data) % 3) {
    case 0:
      motley::say_to(motley::TlsSession::Role::kServer, bytes);
      break;
    case 1:
      motley::say_to(motley::TlsSession::Role::kClient, bytes);
      break;
    default:
      motley::meddle(bytes);
  }
  return 0;
}
