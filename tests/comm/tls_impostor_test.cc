// A server that does not know the key but has a certificate: a client that accepted it as proof
// would connect to any server.
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/secret.h"
#include "comm/tcp/tls_session.h"

namespace motley {
namespace {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Deleter<X509_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Deleter<SSL_free>>;

CertificatePtr self_signed(EVP_PKEY* key) {
  CertificatePtr certificate(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("rank 0"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_set_pubkey(certificate.get(), key);
  X509_sign(certificate.get(), key, EVP_sha256());
  return certificate;
}

// An ordinary TLS server, as of a web site, on memory buffers.
class Impostor {
 public:
  Impostor() : key_(EVP_EC_gen("P-256")), context_(SSL_CTX_new(TLS_server_method())) {
    certificate_ = self_signed(key_.get());
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), certificate_.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), key_.get()), 1);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl_.get());
  }

  void answer(TlsSession& client) {
    const auto came = client.outgoing();
    BIO_write(SSL_get_rbio(ssl_.get()), came.data(), static_cast<int>(came.size()));
    client.sent(came.size());
    SSL_do_handshake(ssl_.get());
    const auto space = client.space();
    const int count =
        BIO_read(SSL_get_wbio(ssl_.get()), space.data(), static_cast<int>(space.size()));
    if (count > 0) client.received(static_cast<std::size_t>(count));
    answered_bytes_ += count > 0 ? count : 0;
  }

  [[nodiscard]] int answered_bytes() const { return answered_bytes_; }

 private:
  KeyPtr key_;
  CertificatePtr certificate_;
  ContextPtr context_;
  SslPtr ssl_;
  int answered_bytes_ = 0;
};

TEST(TlsImpostor, IsNotTakenForAHolderOfTheKey) {
  auto context = TlsContext::make(std::string(kSecretBytes, 'k'), "epoch 1");
  ASSERT_TRUE(context.ok());
  TlsSession client(*context, TlsSession::Role::kClient);
  ASSERT_FALSE(*client.handshake());
  Impostor impostor;
  impostor.answer(client);
  EXPECT_GT(impostor.answered_bytes(), 500);  // including its certificate
  const auto done = client.handshake();
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().cause, testing::HasSubstr("certificate"));
}

}  // namespace
}  // namespace motley
