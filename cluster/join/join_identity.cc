#include "cluster/join/join_identity.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <span>

#include "base/check.h"
#include "base/hex.h"

namespace motley {
namespace {

Error no_openssl(const char* what) {
  return {ErrorCode::kInternal, fmt::format("OpenSSL cannot {}", what), "",
          "install OpenSSL 3 with its default provider; check its openssl.cnf"};
}

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// Any certificate passes: the other end's fingerprint is compared after the handshake.
int accept_any(X509_STORE_CTX* /*store*/, void* /*argument*/) {
  return 1;
}

}  // namespace

void JoinIdentity::Free::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

void JoinIdentity::Free::operator()(ssl_ctx_st* tls) const {
  SSL_CTX_free(tls);
}

JoinIdentity::~JoinIdentity() = default;

Result<JoinIdentity> JoinIdentity::make() {
  JoinIdentity identity(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (identity.key_ == nullptr) return no_openssl("make an Ed25519 key");
  MOTLEY_TRY(identity.certify());
  return identity;
}

Result<JoinIdentity> JoinIdentity::from_seed(std::string_view seed) {
  MOTLEY_CHECK(seed.size() == kIdentitySeedBytes, "a seed of {} bytes", seed.size());
  JoinIdentity identity(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed.data()), seed.size()));
  if (identity.key_ == nullptr) return no_openssl("make an Ed25519 key");
  MOTLEY_TRY(identity.certify());
  return identity;
}

Result<JoinIdentity> JoinIdentity::from_text(const std::string& text) {
  const std::unique_ptr<BIO, FreeBio> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  // The empty password keeps OpenSSL from asking for one on the terminal.
  char no_password[] = "";
  JoinIdentity identity(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_password));
  if (identity.key_ == nullptr || EVP_PKEY_is_a(identity.key_.get(), "ED25519") != 1) {
    return Error{ErrorCode::kCorrupt, "this is not a key", "", "remove the file"};
  }
  MOTLEY_TRY(identity.certify());
  return identity;
}

Result<std::string> JoinIdentity::key_text() const {
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return no_openssl("write a key");
  }
  char* begin = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &begin);
  return std::string(begin, static_cast<std::size_t>(bytes));
}

Result<void> JoinIdentity::certify() {
  const std::unique_ptr<X509, FreeX509> certificate(X509_new());
  X509* const x509 = certificate.get();
  constexpr long kDay_s = 86400;
  X509_NAME* const name = x509 == nullptr ? nullptr : X509_get_subject_name(x509);
  // The dates are not checked: the clocks of two machines may differ by any time.
  const bool made = name != nullptr && X509_set_version(x509, 2) == 1 &&
                    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1) == 1 &&
                    X509_gmtime_adj(X509_getm_notBefore(x509), -kDay_s) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(x509), 3650 * kDay_s) != nullptr &&
                    X509_set_pubkey(x509, key_.get()) == 1 &&
                    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                               reinterpret_cast<const unsigned char*>("motley"), -1,
                                               -1, 0) == 1 &&
                    X509_set_issuer_name(x509, name) == 1 &&
                    X509_sign(x509, key_.get(), nullptr) > 0;
  if (!made) return no_openssl("make a certificate");
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  if (X509_pubkey_digest(x509, EVP_sha256(), digest.data(), &bytes) != 1) return no_openssl("hash");
  fingerprint_ = to_hex(std::span(reinterpret_cast<const char*>(digest.data()), bytes));
  tls_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* const tls = tls_.get();
  const bool ready =
      tls != nullptr && SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(tls, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256") == 1 &&
      SSL_CTX_set1_groups_list(tls, "X25519:P-256") == 1 && SSL_CTX_set_num_tickets(tls, 0) == 1 &&
      SSL_CTX_use_certificate(tls, x509) == 1 && SSL_CTX_use_PrivateKey(tls, key_.get()) == 1;
  if (!ready) return no_openssl("use TLS 1.3 with the required settings");
  SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(tls, accept_any, nullptr);
  return {};
}

std::string ticket_proof(std::string_view secret, const ProofContext& context) {
  const std::string message = "motley join 1\n" + context.exported + context.head + context.machine;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  const unsigned char* made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()),
                                   message.size(), digest.data(), &bytes);
  MOTLEY_CHECK(made != nullptr, "no HMAC of {} bytes", message.size());
  return {reinterpret_cast<const char*>(digest.data()), bytes};
}

bool is_same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace motley
