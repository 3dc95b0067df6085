// Hello: what two ranks say to each other first on a TCP connection, each to each: who they are and
// which group they belong to (docs/formats/tcp.md). With TLS it comes after the handshake, which
// proves that the other end belongs to the launch; the hello says which rank of it, and whether the
// two are on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/shared_memory.h"

namespace motley {

inline constexpr std::size_t kHelloBytes = 48;

struct Hello {
  std::uint32_t epoch = 0;
  std::int32_t rank_count = 0;
  Rank from;
  Rank to;
  // The connection has one address at both ends, and the speaker takes the short way that this
  // opens. Only if both say so it counts.
  bool local = false;
  // The end that connected offers memory that the two may share if they are on one machine. The
  // other end answers with the same offer if it has opened the memory.
  MemoryOffer memory;

  friend bool operator==(const Hello&, const Hello&) = default;
};

void write_hello(const Hello& hello, std::span<std::byte, kHelloBytes> bytes);

// Untrusted bytes. kCorrupt for what is not a hello of this version.
[[nodiscard]] Result<Hello> read_hello(std::span<const std::byte, kHelloBytes> bytes);

// Checks that `theirs` can come from another rank of the group and is meant for the one that says
// `mine`. kCorrupt names the difference. mine.to is not looked at.
[[nodiscard]] Result<void> check_hello(const Hello& theirs, const Hello& mine);

}  // namespace motley
