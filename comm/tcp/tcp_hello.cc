#include "comm/tcp/tcp_hello.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/hash.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "hellos are little-endian");

constexpr std::uint32_t kHelloMagic = 0x484C544D;  // "MTLH"
constexpr std::uint16_t kHelloVersion = 6;

// The hello's layout in memory and on the wire.
struct HelloLayout {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t local;  // 0 or 1
  std::uint32_t epoch;
  std::int32_t rank_count;
  std::int32_t from;
  std::int32_t to;
  std::uint32_t memory_process;
  std::uint32_t memory_file;
  std::uint64_t memory_nonce;
  std::uint64_t hash;
};

static_assert(sizeof(HelloLayout) == kHelloBytes);

constexpr std::size_t kHelloHashedBytes = offsetof(HelloLayout, hash);

Error refused(const std::string& cause) {
  return {ErrorCode::kCorrupt, "a hello that cannot be accepted", cause,
          "start all ranks from the same version, in the same launch"};
}

}  // namespace

void write_hello(const Hello& hello, std::span<std::byte, kHelloBytes> bytes) {
  const std::uint16_t local = hello.local ? 1 : 0;
  const HelloLayout layout = {kHelloMagic,
                              kHelloVersion,
                              local,
                              hello.epoch,
                              hello.rank_count,
                              hello.from.value,
                              hello.to.value,
                              hello.memory.process,
                              hello.memory.file,
                              hello.memory.nonce,
                              0};
  std::memcpy(bytes.data(), &layout, kHelloBytes);
  const std::uint64_t hash = hash64(bytes.first(kHelloHashedBytes));
  std::memcpy(bytes.data() + kHelloHashedBytes, &hash, sizeof hash);
}

Result<Hello> read_hello(std::span<const std::byte, kHelloBytes> bytes) {
  HelloLayout layout;
  std::memcpy(&layout, bytes.data(), kHelloBytes);
  if (layout.magic != kHelloMagic) return refused("it does not start like a hello of Motley");
  // Checked before the version, so that a flipped bit there is not reported as another version.
  if (layout.hash != hash64(bytes.first(kHelloHashedBytes))) {
    return refused("it was damaged in transit");
  }
  if (layout.version != kHelloVersion) {
    return refused(
        fmt::format("it has version {}, this program has {}", layout.version, kHelloVersion));
  }
  if (layout.local > 1) return refused("its flag for the same machine is invalid");
  return Hello{layout.epoch,      layout.rank_count,
               Rank{layout.from}, Rank{layout.to},
               layout.local == 1, {layout.memory_process, layout.memory_file, layout.memory_nonce}};
}

Result<void> check_hello(const Hello& theirs, const Hello& mine) {
  if (theirs.epoch != mine.epoch) {
    return refused(fmt::format("its epoch is {}, this rank's is {}", theirs.epoch, mine.epoch));
  }
  if (theirs.rank_count != mine.rank_count) {
    return refused(
        fmt::format("it is for {} ranks, this group has {}", theirs.rank_count, mine.rank_count));
  }
  if (theirs.to != mine.from) {
    return refused(
        fmt::format("it is for rank {}, this is rank {}", theirs.to.value, mine.from.value));
  }
  if (theirs.from == mine.from || theirs.from.value < 0 || theirs.from.value >= mine.rank_count) {
    return refused(fmt::format("its sender is rank {}", theirs.from.value));
  }
  return {};
}

}  // namespace motley
