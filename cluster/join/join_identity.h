// The keys by which a head and a joining machine know each other, by OpenSSL: an Ed25519 key with a
// certificate that it signs itself. No authority is involved: each end compares the other's
// fingerprint, the SHA-256 of its public key. TLS 1.3 proves that the other end has the key.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct evp_pkey_st;
struct ssl_ctx_st;

namespace motley {

// Of an Ed25519 private key.
inline constexpr std::size_t kIdentitySeedBytes = 32;

class JoinIdentity {
 public:
  // A new key. kInternal if OpenSSL lacks a required feature.
  [[nodiscard]] static Result<JoinIdentity> make();
  // The key of these bytes. REQUIRES: kIdentitySeedBytes of them.
  [[nodiscard]] static Result<JoinIdentity> from_seed(std::string_view seed);
  // From key_text(). kCorrupt if the text is not such a key.
  [[nodiscard]] static Result<JoinIdentity> from_text(const std::string& text);
  JoinIdentity(JoinIdentity&& other) noexcept = default;
  JoinIdentity& operator=(JoinIdentity&& other) noexcept = default;
  ~JoinIdentity();

  // 64 lower-case hexadecimal digits.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

  // The private key as PEM.
  [[nodiscard]] Result<std::string> key_text() const;

  // TLS 1.3 with this certificate, without tickets. Both ends must show a certificate; which one is
  // for the caller to judge.
  [[nodiscard]] ssl_ctx_st* tls() const { return tls_.get(); }

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
    void operator()(ssl_ctx_st* tls) const;
  };

  explicit JoinIdentity(evp_pkey_st* key) : key_(key) {}

  [[nodiscard]] Result<void> certify();

  std::unique_ptr<evp_pkey_st, Free> key_;
  std::unique_ptr<ssl_ctx_st, Free> tls_;
  std::string fingerprint_;
};

// What a proof of the ticket's secret is bound to: the TLS session, by its exported key, and both
// keys. A proof is thus of no use in another connection.
struct ProofContext {
  std::string exported;  // TlsLink::exported()
  std::string head;      // fingerprint
  std::string machine;   // fingerprint
};

// HMAC-SHA256 with the secret as its key: 32 bytes.
[[nodiscard]] std::string ticket_proof(std::string_view secret, const ProofContext& context);

// Compares in a time that does not depend on the content.
[[nodiscard]] bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace motley
