#include "cluster/join/shared_secret.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <utility>

#include "base/secret.h"
#include "cluster/join/ticket.h"

namespace motley {
namespace {

// 32 MiB and some 0.1 s for each guess.
constexpr std::uint64_t kCost = 1 << 15;
constexpr std::uint64_t kBlock = 8;
constexpr std::uint64_t kParallel = 1;
constexpr std::uint64_t kMemoryMax = std::uint64_t{64} << 20;

}  // namespace

Result<DerivedSecret> derive_secret(std::string_view secret, std::uint16_t port) {
  if (secret.size() < kSharedSecretBytesMin) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the shared secret has {} bytes, fewer than {}", secret.size(),
                             kSharedSecretBytesMin),
                 "a short one could be guessed",
                 "make a random one: head -c 32 /dev/urandom | base64 > secret"};
  }
  const std::string salt = fmt::format("motley join 1\n{}\n", port);
  std::array<unsigned char, kIdentitySeedBytes + kTicketSecretBytes> made{};
  const int is_made = EVP_PBE_scrypt(
      secret.data(), secret.size(), reinterpret_cast<const unsigned char*>(salt.data()),
      salt.size(), kCost, kBlock, kParallel, kMemoryMax, made.data(), made.size());
  if (is_made != 1) {
    return Error{ErrorCode::kInternal, "OpenSSL cannot use scrypt", "",
                 "install OpenSSL 3 with its default provider; check its openssl.cnf"};
  }
  std::string bytes(reinterpret_cast<const char*>(made.data()), made.size());
  Result<JoinIdentity> head =
      JoinIdentity::from_seed(std::string_view(bytes).substr(0, kIdentitySeedBytes));
  std::string ticket_secret = bytes.substr(kIdentitySeedBytes);
  wipe(bytes);
  if (!head.ok()) return std::move(head).error();
  return DerivedSecret{std::move(head).value(), std::move(ticket_secret)};
}

}  // namespace motley
