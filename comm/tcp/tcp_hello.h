// Hello: the first message of each rank on a TCP connection: its rank and its group
// (docs/formats/tcp.md). With TLS it follows the handshake, which proves that the other end belongs
// to the launch; the hello adds the rank and whether the two are on one machine.
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
  // The sender sees one address at both ends of the connection, and uses the local mode. It takes
  // effect only if both hellos set it.
  bool local = false;
  // The dialling end offers memory that the two may share if they are on one machine. The other end
  // answers with the same offer if it has opened the memory.
  MemoryOffer memory;

  friend bool operator==(const Hello&, const Hello&) = default;
};

void write_hello(const Hello& hello, std::span<std::byte, kHelloBytes> bytes);

// Parses untrusted bytes. kCorrupt if they are not a hello of this version.
[[nodiscard]] Result<Hello> read_hello(std::span<const std::byte, kHelloBytes> bytes);

// Checks that `theirs` comes from another rank of `mine`'s group and is addressed to it. kCorrupt
// names the difference. Ignores mine.to.
[[nodiscard]] Result<void> check_hello(const Hello& theirs, const Hello& mine);

}  // namespace motley
