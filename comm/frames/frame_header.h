// The 64 bytes before each payload (docs/formats/frame.md): serialisation, and parsing of untrusted
// bytes.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer.h"

namespace motley {

struct FrameHeader {
  std::uint32_t epoch = 0;
  std::uint64_t plan_hash = 0;
  Rank sender;
  FrameId id;
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_hash = 0;  // hash64 of the payload
};

void write_header(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes);

// kCorrupt if the bytes are not an intact header of this version. Does not check the values of the
// fields.
[[nodiscard]] Result<FrameHeader> read_header(std::span<const std::byte, kFrameHeaderBytes> bytes);

}  // namespace motley
