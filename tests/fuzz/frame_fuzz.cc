// Bytes from a peer in place of an expected frame. The first byte selects which hashes and lengths
// are corrected, since no fuzzer would guess them, so that the code behind their checks is
// reached.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "comm/frames/frame_header.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/inproc_transport.h"
#include "tests/fuzz/frames.h"

namespace motley {
namespace {

constexpr std::size_t kBufferBytes = 4096;

void correct_checks(Buffer& buffer, unsigned choice) {
  const std::span<std::byte> header = buffer.header();
  if ((choice & 1) != 0) {
    const std::uint64_t bytes = buffer.payload_bytes();
    std::memcpy(header.data() + 40, &bytes, sizeof bytes);
  }
  if ((choice & 2) != 0) {
    const std::uint64_t hash = hash64(std::as_const(buffer).payload());
    std::memcpy(header.data() + 48, &hash, sizeof hash);
  }
  if ((choice & 4) != 0) {
    const std::uint64_t hash = hash64(header.first(56));
    std::memcpy(header.data() + 56, &hash, sizeof hash);
  }
}

// A frame is accepted if and only if it is exactly the expected one.
void receive(Buffer sent) {
  const Buffer copy = [&] {
    Buffer same(sent.payload_bytes());
    same.set_payload_bytes(sent.payload_bytes());
    std::ranges::copy(sent.message(), same.message().begin());
    return same;
  }();
  const auto ranks = make_inproc_transports(2);
  FrameLink link(*ranks[1], Rank{1}, kFuzzEpoch, kFuzzPlan);
  auto frame = link.recv(Rank{0}, kFuzzFrame, Buffer(kBufferBytes));
  auto sending = ranks[0]->send(Rank{1}, kFuzzTag, std::move(sent));
  const auto came = frame.wait(Deadline::after_s(0));
  if (!came.ok()) {
    MOTLEY_CHECK(came.error().code == ErrorCode::kCorrupt, "{}", describe(came.error()));
    MOTLEY_CHECK(!came.error().cause.empty() && describe(came.error()).size() < 1000, "{}",
                 describe(came.error()));
    return;
  }
  const auto header = read_header(came->header().first<kFrameHeaderBytes>());
  MOTLEY_CHECK(header.ok() && header->id == kFuzzFrame && header->sender == Rank{0} &&
                   header->epoch == kFuzzEpoch && header->plan_hash == kFuzzPlan,
               "another frame was accepted");
  MOTLEY_CHECK(std::ranges::equal(came->payload(), copy.payload()), "another payload");
}

}  // namespace
}  // namespace motley

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size < 1 + motley::kFrameHeaderBytes) return 0;
  const std::size_t message_bytes = size - 1;
  motley::Buffer buffer(message_bytes - motley::kFrameHeaderBytes);
  buffer.set_payload_bytes(message_bytes - motley::kFrameHeaderBytes);
  std::memcpy(buffer.message().data(), data + 1, message_bytes);
  motley::correct_checks(buffer, static_cast<unsigned char>(*data));
  motley::receive(std::move(buffer));
  return 0;
}
