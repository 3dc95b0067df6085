#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace motley {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

XXH3_state_t* as_state(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

}  // namespace

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash64(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::string hash128_hex(std::span<const std::byte> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

Hasher128::Hasher128() : state_(XXH3_createState()) {
  XXH3_128bits_reset(as_state(state_));
}

Hasher128::~Hasher128() {
  XXH3_freeState(as_state(state_));
}

void Hasher128::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(as_state(state_), bytes.data(), bytes.size());
}

void Hasher128::add(std::string_view text) {
  XXH3_128bits_update(as_state(state_), text.data(), text.size());
}

std::string Hasher128::hex() const {
  return to_hex(XXH3_128bits_digest(as_state(state_)));
}

}  // namespace motley
