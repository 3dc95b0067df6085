// The bytes of a TCP peer: a hello, then a stream of messages for a few receives.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "comm/message_stream.h"
#include "comm/tcp_hello.h"

namespace {

void read_as_hello(std::span<const std::byte> bytes) {
  if (bytes.size() < motley::kHelloBytes) return;
  const auto hello = motley::read_hello(bytes.first<motley::kHelloBytes>());
  if (!hello.ok()) return;
  std::array<std::byte, motley::kHelloBytes> again;
  motley::write_hello(*hello, again);
  MOTLEY_CHECK(std::ranges::equal(again, bytes.first<motley::kHelloBytes>()), "another hello");
}

void read_as_stream(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kEarlyBytesMax = 1 << 16;
  motley::Mailbox mailbox(motley::Rank{0}, kEarlyBytesMax);
  motley::MessageReader reader(mailbox);
  std::vector<motley::Pending> receives;
  for (const motley::Tag tag : {0, 1, 1, 2}) {
    receives.push_back(mailbox.recv(tag, motley::Buffer(100)).pending);
  }
  while (!bytes.empty()) {
    const auto room = reader.room();
    if (!room.ok() || room->empty()) break;
    const std::size_t count = std::min(room->size(), bytes.size());
    std::memcpy(room->data(), bytes.data(), count);
    reader.fill(count);
    bytes = bytes.subspan(count);
  }
  mailbox.lose("the end");
  for (motley::Pending& receive : receives) {
    const auto outcome = receive.wait(motley::Deadline::after_s(1), "a message");
    MOTLEY_CHECK(!outcome.ok() || outcome->payload_bytes() <= 100, "an overrun");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_as_hello(bytes);
  read_as_stream(bytes);
  return 0;
}
