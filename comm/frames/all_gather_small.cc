// A star around rank 0: each rank sends its payload to rank 0, which sends all payloads to each
// rank, every payload preceded by its length as 32 bits.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/wire_sizes.h"
#include "comm/frames/frame_link.h"

namespace motley {
namespace {

using Payloads = std::vector<std::vector<std::byte>>;  // [Rank]

constexpr Rank kCentre{0};

std::vector<std::byte> payload_of(const Buffer& buffer) {
  return {buffer.payload().begin(), buffer.payload().end()};
}

std::vector<std::byte> packed(const Payloads& payloads) {
  std::vector<std::byte> bytes;
  for (const auto& payload : payloads) {
    const auto length = static_cast<GatheredLength>(payload.size());
    const auto length_bytes = std::as_bytes(std::span(&length, 1));
    bytes.insert(bytes.end(), length_bytes.begin(), length_bytes.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
  }
  return bytes;
}

Result<Payloads> unpacked(std::span<const std::byte> bytes, std::size_t count) {
  const Error malformed{ErrorCode::kCorrupt, "malformed all-gather message from rank 0",
                        "its lengths do not add up", "start all ranks from the same version"};
  Payloads payloads;
  for (std::size_t rank = 0; rank < count; ++rank) {
    GatheredLength length = 0;
    if (bytes.size() < sizeof length) return malformed;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(sizeof length);
    if (bytes.size() < length) return malformed;
    payloads.emplace_back(bytes.begin(), bytes.begin() + length);
    bytes = bytes.subspan(length);
  }
  if (!bytes.empty()) return malformed;
  return payloads;
}

// One rank's inputs and results of an all-gather.
struct Gathering {
  FrameLink& link;
  Rank self;
  int rank_count;
  std::int64_t step;
  std::span<const std::byte> mine;
  std::size_t bytes_max;
  Deadline deadline;

  [[nodiscard]] Result<Payloads> as_centre() const {
    std::vector<PendingFrame> receives;
    for (Rank rank{1}; rank.value < rank_count; ++rank.value) {
      receives.push_back(link.recv(rank, FrameId::vote(rank, step), Buffer(bytes_max)));
    }
    Payloads payloads{{mine.begin(), mine.end()}};
    for (auto& receive : receives) {
      MOTLEY_ASSIGN(const Buffer buffer, receive.wait(deadline));
      payloads.push_back(payload_of(buffer));
    }
    const std::vector<std::byte> answer = packed(payloads);
    std::vector<Pending> sends;
    for (Rank rank{1}; rank.value < rank_count; ++rank.value) {
      sends.push_back(link.send(rank, FrameId::all_votes(step), buffer_with(answer)));
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      MOTLEY_TRY(sends[i].wait(
          deadline, fmt::format("rank {} to receive the votes of step {}", i + 1, step)));
    }
    return payloads;
  }

  [[nodiscard]] Result<Payloads> as_leaf() const {
    const auto count = static_cast<std::size_t>(rank_count);
    auto answer = link.recv(kCentre, FrameId::all_votes(step),
                            Buffer(count * (sizeof(GatheredLength) + bytes_max)));
    auto sent = link.send(kCentre, FrameId::vote(self, step), buffer_with(mine));
    MOTLEY_TRY(sent.wait(deadline, fmt::format("rank 0 to receive the vote of step {}", step)));
    MOTLEY_ASSIGN(const Buffer buffer, answer.wait(deadline));
    return unpacked(buffer.payload(), count);
  }
};

}  // namespace

Result<Payloads> all_gather_small(FrameLink& link,
                                  Rank self,
                                  int rank_count,
                                  std::int64_t step,
                                  std::span<const std::byte> mine,
                                  std::size_t bytes_max,
                                  Deadline deadline) {
  MOTLEY_CHECK(mine.size() <= bytes_max, "{} bytes where {} are agreed", mine.size(), bytes_max);
  const Gathering gathering{link, self, rank_count, step, mine, bytes_max, deadline};
  return self == kCentre ? gathering.as_centre() : gathering.as_leaf();
}

}  // namespace motley
