#include "comm/tcp/tls_session.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/secret.h"

namespace motley {
namespace {

constexpr std::size_t kFirstRoomBytes = std::size_t{16} << 10;
constexpr std::size_t kManyBytes = std::size_t{256} << 10;  // sixteen records per system call
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};

// Whether OpenSSL's next error is a received alert.
bool is_alert() {
  return ERR_GET_REASON(ERR_peek_error()) > SSL_AD_REASON_OFFSET;
}

std::string queued_reason() {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace

// OpenSSL's callbacks for the key. The session fails unless both sides agree on the identity.
struct TlsContext::Callbacks {
  static SSL_SESSION* new_session(SSL* ssl, const TlsContext& context) {
    SSL_SESSION* session = SSL_SESSION_new();
    const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
    const bool made = session != nullptr && cipher != nullptr &&
                      SSL_SESSION_set1_master_key(
                          session, reinterpret_cast<const unsigned char*>(context.key_.data()),
                          context.key_.size()) == 1 &&
                      SSL_SESSION_set_cipher(session, cipher) == 1 &&
                      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
    if (made) return session;
    SSL_SESSION_free(session);
    return nullptr;
  }

  static const TlsContext& of(SSL* ssl) {
    return *static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  }

  static int use(SSL* ssl,
                 const EVP_MD* digest,
                 const unsigned char** identity,
                 std::size_t* identity_bytes,
                 SSL_SESSION** session) {
    const TlsContext& context = of(ssl);
    *session = nullptr;
    if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 1;
    *identity = reinterpret_cast<const unsigned char*>(context.identity_.data());
    *identity_bytes = context.identity_.size();
    *session = new_session(ssl, context);
    return *session != nullptr ? 1 : 0;
  }

  static int find(SSL* ssl,
                  const unsigned char* identity,
                  std::size_t identity_bytes,
                  SSL_SESSION** session) {
    const TlsContext& context = of(ssl);
    *session = nullptr;
    const std::string_view asked(reinterpret_cast<const char*>(identity), identity_bytes);
    if (asked != context.identity_) return 1;
    *session = new_session(ssl, context);
    return *session != nullptr ? 1 : 0;
  }
};

// OpenSSL's network interface: the queues of the session.
struct TlsBio {
  static int write(BIO* bio, const char* bytes, std::size_t count, std::size_t* written) {
    auto& queue = static_cast<TlsSession*>(BIO_get_data(bio))->outgoing_;
    BIO_clear_retry_flags(bio);
    const auto space = queue.space();
    *written = std::min(count, space.size());
    if (*written == 0) {
      BIO_set_retry_write(bio);
      return 0;
    }
    std::memcpy(space.data(), bytes, *written);
    queue.add(*written);
    return 1;
  }

  static int read(BIO* bio, char* bytes, std::size_t count, std::size_t* read) {
    auto& queue = static_cast<TlsSession*>(BIO_get_data(bio))->incoming_;
    BIO_clear_retry_flags(bio);
    const auto there = queue.bytes();
    *read = std::min(count, there.size());
    if (*read == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(bytes, there.data(), *read);
    queue.drop(*read);
    return 1;
  }

  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
};

TlsContext::TlsContext(std::string key, std::string identity)
    : key_(std::move(key)), identity_(std::move(identity)) {}

TlsContext::~TlsContext() {
  SSL_CTX_free(ssl_context_);
  BIO_meth_free(bio_method_);
  wipe(key_);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::make(std::string key, std::string identity) {
  const std::shared_ptr<TlsContext> context(new TlsContext(std::move(key), std::move(identity)));
  SSL_CTX* ssl = context->ssl_context_ = SSL_CTX_new(TLS_method());
  BIO_METHOD* bio = context->bio_method_ = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "motley");
  const bool made =
      ssl != nullptr && bio != nullptr && SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256") == 1 &&
      SSL_CTX_set1_groups_list(ssl, "X25519:P-256") == 1 && SSL_CTX_set_num_tickets(ssl, 0) == 1 &&
      BIO_meth_set_write_ex(bio, TlsBio::write) == 1 &&
      BIO_meth_set_read_ex(bio, TlsBio::read) == 1 && BIO_meth_set_ctrl(bio, TlsBio::control) == 1;
  if (!made) {
    return Error{ErrorCode::kInternal,
                 "OpenSSL does not support TLS 1.3 with the required settings", queued_reason(),
                 "install OpenSSL 3; check its openssl.cnf"};
  }
  SSL_CTX_set_app_data(ssl, context.get());
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_psk_use_session_callback(ssl, Callbacks::use);
  SSL_CTX_set_psk_find_session_callback(ssl, Callbacks::find);
  return std::shared_ptr<const TlsContext>(context);
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context,
                       Role role,
                       std::uint64_t rekey_bytes)
    : context_(std::move(context)),
      rekey_bytes_(rekey_bytes),
      incoming_(kFirstRoomBytes),
      outgoing_(kFirstRoomBytes) {
  ssl_ = SSL_new(context_->ssl_context_);
  BIO* bio = BIO_new(context_->bio_method_);
  MOTLEY_CHECK(ssl_ != nullptr && bio != nullptr, "out of memory for a TLS session");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  if (role == Role::kClient) {
    SSL_set_connect_state(ssl_);
    // A server without the key could offer a certificate instead. No certificate authority is
    // trusted, so it is rejected; handshake() also checks that the key was used.
    SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
  } else {
    SSL_set_accept_state(ssl_);
  }
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

void TlsSession::grow() {
  incoming_.grow(kManyBytes);
  outgoing_.grow(kManyBytes);
}

Error TlsSession::failed(const char* doing, int outcome) const {
  if (SSL_get_error(ssl_, outcome) == SSL_ERROR_ZERO_RETURN) {
    return {ErrorCode::kPeer, "TLS", "it closed the connection", ""};
  }
  return {ErrorCode::kPeer, "TLS", fmt::format("{}: {}", doing, queued_reason()), ""};
}

Result<bool> TlsSession::handshake() {
  ERR_clear_error();
  const int outcome = SSL_do_handshake(ssl_);
  if (outcome == 1) {
    if (SSL_session_reused(ssl_) == 1) return true;
    return Error{ErrorCode::kPeer, "TLS", "the other end did not use the key of this launch", ""};
  }
  const int error = SSL_get_error(ssl_, outcome);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  const bool is_refusal = error == SSL_ERROR_SSL && is_alert();
  Error failure = failed("the TLS handshake failed", outcome);
  if (is_refusal) failure.code = ErrorCode::kUnauthorised;
  return failure;
}

Result<std::size_t> TlsSession::read(std::span<std::byte> plain) {
  ERR_clear_error();
  std::size_t count = 0;
  const int outcome = SSL_read_ex(ssl_, plain.data(), plain.size(), &count);
  if (outcome == 1) return count;
  if (SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_READ) return std::size_t{0};
  return failed("the received data is not what the other end sent", outcome);
}

Result<std::size_t> TlsSession::write(std::span<const std::byte> plain) {
  ERR_clear_error();
  if (written_bytes_ >= rekey_bytes_ && !retries_) {
    if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return failed("no new key", 0);
    written_bytes_ = 0;
  }
  std::size_t count = 0;
  const int outcome = SSL_write_ex(ssl_, plain.data(), plain.size(), &count);
  retries_ = outcome != 1;
  if (outcome == 1) {
    written_bytes_ += count;
    return count;
  }
  if (SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_WRITE) return std::size_t{0};
  return failed("cannot encrypt", outcome);
}

// OpenSSL reads no more from its network than the requested record (SSL_set_read_ahead is off), so
// later bytes are still in the queue.
Result<std::span<const std::byte>> TlsSession::stop_encryption() {
  MOTLEY_CHECK(outgoing_.bytes().empty(), "{} bytes were not sent", outgoing_.bytes().size());
  if (SSL_has_pending(ssl_) == 0) return incoming_.bytes();
  return Error{ErrorCode::kPeer, "TLS", "it continued with TLS after its announced end", ""};
}

}  // namespace motley
