#include "models/package/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "base/check.h"
#include "base/hex.h"

namespace motley {
namespace {

constexpr std::size_t kHashBytes = 32;

EVP_MD_CTX* as_context(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

Result<Sha256> Sha256::make() {
  Sha256 hash(EVP_MD_CTX_new());
  if (hash.context_ == nullptr ||
      EVP_DigestInit_ex(as_context(hash.context_), EVP_sha256(), nullptr) != 1) {
    return Error{ErrorCode::kInternal, "OpenSSL cannot hash", "it has no SHA-256",
                 "install OpenSSL 3 with its default provider"};
  }
  return hash;
}

Sha256::Sha256(Sha256&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}

Sha256::~Sha256() {
  EVP_MD_CTX_free(as_context(context_));
}

void Sha256::add(std::span<const std::byte> bytes) {
  const int added = EVP_DigestUpdate(as_context(context_), bytes.data(), bytes.size());
  MOTLEY_CHECK(added == 1, "SHA-256 of {} bytes", bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, kHashBytes> hash{};
  const int finished = EVP_DigestFinal_ex(as_context(context_), hash.data(), nullptr);
  MOTLEY_CHECK(finished == 1, "SHA-256 was ended before");
  return to_hex({reinterpret_cast<const char*>(hash.data()), hash.size()});
}

}  // namespace motley
