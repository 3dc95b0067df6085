// SHA-256, by OpenSSL, as other programs write it beside their files. Private to models/package and
// to the transfers of cluster/join/.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace motley {

class Sha256 {
 public:
  // kInternal if OpenSSL does not support it.
  [[nodiscard]] static Result<Sha256> make();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) = delete;
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void add(std::span<const std::byte> bytes);
  // 64 lower-case hexadecimal digits. Called once, at the end.
  [[nodiscard]] std::string hex();

 private:
  explicit Sha256(void* context) : context_(context) {}

  void* context_;  // EVP_MD_CTX, hidden from this header
};

}  // namespace motley
