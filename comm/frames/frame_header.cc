#include "comm/frames/frame_header.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/hash.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr std::uint32_t kMagic = 0x464C544D;  // "MTLF"
constexpr std::uint16_t kVersion = 5;

// The header's layout in memory and on the wire.
struct FrameLayout {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint8_t kind;
  std::uint8_t reserved;
  std::uint32_t epoch;
  std::int32_t sender;
  std::uint64_t plan_hash;
  std::int32_t chunk;
  std::int32_t micro;
  std::int64_t step;
  std::uint64_t payload_bytes;
  std::uint64_t payload_hash;
  std::uint64_t header_hash;
};

static_assert(sizeof(FrameLayout) == kFrameHeaderBytes);

constexpr std::size_t kHashedBytes = offsetof(FrameLayout, header_hash);

Error unreadable(const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kCorrupt, "unreadable frame", cause, remedy};
}

}  // namespace

void write_header(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes) {
  const FrameLayout layout = {kMagic,
                              kVersion,
                              static_cast<std::uint8_t>(header.id.kind()),
                              0,
                              header.epoch,
                              header.sender.value,
                              header.plan_hash,
                              header.id.source(),
                              header.id.number(),
                              header.id.step(),
                              header.payload_bytes,
                              header.payload_hash,
                              0};
  std::memcpy(bytes.data(), &layout, kFrameHeaderBytes);
  const std::uint64_t header_hash = hash64(bytes.first(kHashedBytes));
  std::memcpy(bytes.data() + kHashedBytes, &header_hash, sizeof header_hash);
}

Result<FrameHeader> read_header(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  FrameLayout layout;
  std::memcpy(&layout, bytes.data(), kFrameHeaderBytes);
  if (layout.magic != kMagic) {
    return unreadable("it does not start like a frame of Motley",
                      "check that no other program uses these addresses");
  }
  // Checked before the version, so that a flipped bit there is not reported as another version.
  if (layout.header_hash != hash64(bytes.first(kHashedBytes))) {
    return unreadable("its header was damaged in transit", "check the network and the memory");
  }
  if (layout.version != kVersion) {
    return unreadable(
        fmt::format("it has version {}, this program has {}", layout.version, kVersion),
        "install the same version of Motley on all machines");
  }
  if (layout.reserved != 0) {
    return unreadable("a reserved byte is set",
                      "install the same version of Motley on all machines");
  }
  return FrameHeader{layout.epoch,
                     layout.plan_hash,
                     Rank{layout.sender},
                     FrameId::from_header(static_cast<FrameKind>(layout.kind), layout.chunk,
                                          layout.micro, layout.step),
                     layout.payload_bytes,
                     layout.payload_hash};
}

}  // namespace motley
