#include "comm/tcp/derived_key.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cstddef>
#include <memory>

namespace motley {
namespace {

constexpr std::size_t kKeyBytes = 32;

// OSSL_PARAM is not const even for input parameters.
OSSL_PARAM octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

Result<std::string> derive_key(std::string_view secret, std::string_view purpose) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  std::string digest = "SHA256";
  const std::array parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      octets(OSSL_KDF_PARAM_KEY, secret), octets(OSSL_KDF_PARAM_INFO, purpose),
      OSSL_PARAM_construct_end()};
  std::string key(kKeyBytes, '\0');
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(key.data()), key.size(),
                     parameters.data()) != 1) {
    return Error{ErrorCode::kInternal, "OpenSSL cannot derive a key", "it has no HKDF with SHA-256",
                 "install OpenSSL 3 with its default provider"};
  }
  return key;
}

}  // namespace motley
