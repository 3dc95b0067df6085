#include "cluster/join/tls_link.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/hex.h"

namespace motley {
namespace {

constexpr std::string_view kExportLabel = "EXPORTER-motley-join";
constexpr std::size_t kExportedBytes = 32;
// One TLS record. A read takes whole records, so nothing is left in OpenSSL that poll cannot see.
constexpr std::size_t kRecordBytes = std::size_t{16} << 10;
constexpr int kReadsAtOnce = 16;  // so that one link does not delay the others
constexpr std::size_t kDropSentBytes = std::size_t{256} << 10;

}  // namespace

void TlsLink::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsLink::TlsLink(OwnedFd socket, const JoinIdentity& identity, Role role)
    : socket_(std::move(socket)), ssl_(SSL_new(identity.tls())) {
  MOTLEY_CHECK(ssl_ != nullptr && SSL_set_fd(ssl_.get(), socket_.get()) == 1,
               "out of memory for a TLS session");
  if (role == Role::kHead) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsLink::~TlsLink() = default;

short TlsLink::events() const {
  const bool writes = is_established_ ? has_unsent() : wants_write_;
  return static_cast<short>(POLLIN | (writes ? POLLOUT : 0));
}

Result<void> TlsLink::advance() {
  if (!is_established_) MOTLEY_TRY(shake_hands());
  if (!is_established_) return {};
  MOTLEY_TRY(send_queued());
  return receive();
}

Result<std::optional<JoinFrame>> TlsLink::next() {
  return reader_.next(content_bytes_max_);
}

void TlsLink::send(JoinKind kind, std::uint32_t channel, std::string_view content) {
  unsent_ += encode_frame({kind, channel, std::string(content)});
}

Result<void> TlsLink::later_or_error(int outcome, const char* doing) {
  const int error = SSL_get_error(ssl_.get(), outcome);
  wants_write_ = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {};
  std::string cause = "the other end closed the connection";
  if (error == SSL_ERROR_SYSCALL && errno != 0) cause = std::strerror(errno);
  if (error == SSL_ERROR_SSL) {
    const unsigned long code = ERR_peek_error();
    const char* reason = ERR_reason_error_string(code);
    const bool was_closed = ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    if (!was_closed) cause = reason == nullptr ? "no reason given" : reason;
  }
  ERR_clear_error();
  return Error{ErrorCode::kPeer, doing, cause, ""};
}

Result<void> TlsLink::shake_hands() {
  ERR_clear_error();
  errno = 0;
  const int outcome = SSL_do_handshake(ssl_.get());
  has_heard_ = BIO_number_read(SSL_get_rbio(ssl_.get())) > 0;
  if (outcome != 1) return later_or_error(outcome, "the TLS handshake failed");
  heard_at_s_ = now_s();
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  std::array<unsigned char, kExportedBytes> exported{};
  if (certificate == nullptr ||
      X509_pubkey_digest(certificate, EVP_sha256(), digest.data(), &bytes) != 1 ||
      SSL_export_keying_material(ssl_.get(), exported.data(), exported.size(), kExportLabel.data(),
                                 kExportLabel.size(), nullptr, 0, 0) != 1) {
    return Error{ErrorCode::kPeer, "the TLS handshake failed", "it showed no usable key", ""};
  }
  peer_fingerprint_ = to_hex(std::span(reinterpret_cast<const char*>(digest.data()), bytes));
  exported_.assign(reinterpret_cast<const char*>(exported.data()), exported.size());
  is_established_ = true;
  return {};
}

Result<void> TlsLink::send_queued() {
  while (has_unsent()) {
    ERR_clear_error();
    errno = 0;
    std::size_t count = 0;
    const std::size_t bytes = std::min(unsent_bytes(), kRecordBytes);
    const int outcome = SSL_write_ex(ssl_.get(), unsent_.data() + sent_, bytes, &count);
    if (outcome != 1) return later_or_error(outcome, "the connection was lost");
    sent_ += count;
    if (sent_ == unsent_.size() || sent_ >= kDropSentBytes) {
      unsent_.erase(0, sent_);
      sent_ = 0;
    }
  }
  return {};
}

Result<void> TlsLink::receive() {
  std::array<char, kRecordBytes> buffer;
  for (int i = 0; i < kReadsAtOnce; ++i) {
    ERR_clear_error();
    errno = 0;
    std::size_t count = 0;
    const int outcome = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &count);
    if (outcome != 1) return later_or_error(outcome, "the connection was lost");
    has_heard_ = true;
    heard_at_s_ = now_s();
    reader_.add({buffer.data(), count});
  }
  return {};
}

}  // namespace motley
