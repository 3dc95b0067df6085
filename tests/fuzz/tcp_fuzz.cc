// The bytes of a TCP peer: a hello, then a stream of messages for a few receives. The stream
// consists of parts. The first byte of a part selects either a header with a corrected check,
// which no fuzzer would guess, or raw bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/transport/message_stream.h"

namespace motley {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kFuzzedEarlyBytes = 1 << 16;
constexpr std::size_t kSpace = 100;
constexpr std::size_t kReceivesMax = 32;
constexpr std::size_t kInputMax = 4096;  // longer inputs only take more time

void read_as_hello(Bytes bytes, bool corrects_hash) {
  if (bytes.size() < kHelloBytes) return;
  std::array<std::byte, kHelloBytes> hello;
  std::ranges::copy(bytes.first(kHelloBytes), hello.begin());
  if (corrects_hash) {
    const std::uint64_t hash = hash64(std::span(hello).first<kHelloBytes - sizeof hash>());
    std::memcpy(hello.data() + kHelloBytes - sizeof hash, &hash, sizeof hash);
  }
  const auto read = read_hello(hello);
  if (!read.ok()) {
    MOTLEY_CHECK(read.error().code == ErrorCode::kCorrupt, "{}", describe(read.error()));
    return;
  }
  std::array<std::byte, kHelloBytes> again;
  write_hello(*read, again);
  MOTLEY_CHECK(again == hello, "read and written, and not the same");
  const auto checked = check_hello(*read, {1, 3, Rank{1}, Rank{}});
  MOTLEY_CHECK(!checked.ok() || (read->from != Rank{1} && read->from.index() < 3), "from rank {}",
               read->from.value);
}

Bytes take(Bytes& from, std::size_t count) {
  const Bytes taken = from.first(std::min(count, from.size()));
  from = from.subspan(taken.size());
  return taken;
}

std::uint64_t take_number(Bytes& from, std::size_t bytes) {
  const Bytes taken = take(from, bytes);
  std::uint64_t number = 0;
  std::memcpy(&number, taken.data(), taken.size());
  return number;
}

std::vector<std::byte> stream_from(Bytes parts) {
  std::vector<std::byte> stream;
  while (!parts.empty()) {
    const auto choice = std::to_integer<unsigned>(take(parts, 1)[0]);
    if ((choice & 1) != 0) {
      const Tag tag =
          (choice & 2) != 0 ? kHeartbeatTag : take_number(parts, (choice & 4) != 0 ? 6 : 1);
      const std::uint64_t message_bytes = take_number(parts, choice >> 5);
      std::array<std::byte, kStreamHeaderBytes> header;
      write_stream_header(tag, message_bytes, header);
      stream.insert(stream.end(), header.begin(), header.end());
    } else {
      const Bytes raw = take(parts, choice);
      stream.insert(stream.end(), raw.begin(), raw.end());
    }
  }
  return stream;
}

// For any bytes, every receive ends with a message that fits or an error.
void read_as_stream(Bytes stream, std::size_t step) {
  Mailbox mailbox(Rank{0}, kFuzzedEarlyBytes);
  MessageReader reader(mailbox);
  std::vector<Pending> receives;
  const auto post = [&](Tag tag) { receives.push_back(mailbox.recv(tag, Buffer(kSpace)).pending); };
  for (const Tag tag : {Tag{0}, Tag{1}, Tag{1}, Tag{2}, kBulkTag, kBulkTag | 1}) post(tag);
  while (!stream.empty()) {
    const auto space = reader.space();
    if (!space.ok()) {
      MOTLEY_CHECK(space.error().code == ErrorCode::kCorrupt, "{}", describe(space.error()));
      break;
    }
    if (space->empty()) break;
    const Bytes piece = take(stream, std::min(space->size(), step));
    std::ranges::copy(piece, space->begin());
    reader.fill(piece.size());
    if (stream.size() % 7 == 0 && receives.size() < kReceivesMax) post(3);
  }
  mailbox.lose("the end");
  for (Pending& receive : receives) {
    const auto outcome = receive.wait(Deadline::after_s(0), "a message");
    MOTLEY_CHECK(!outcome.ok() || outcome->payload_bytes() <= kSpace, "an overrun");
    MOTLEY_CHECK(outcome.ok() || outcome.error().what.find("timed out") == std::string::npos,
                 "a receive that did not end");
  }
}

}  // namespace
}  // namespace motley

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, std::min(size, motley::kInputMax)));
  const auto choice = std::to_integer<unsigned>(bytes[0]);
  motley::read_as_hello(bytes.subspan(1), (choice & 1) != 0);
  motley::read_as_stream(motley::stream_from(bytes.subspan(1)), 1 + choice);
  return 0;
}
