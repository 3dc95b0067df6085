// FrameLink: what the pipeline speaks. Puts a header before each payload and checks the one that
// arrives: epoch, plan, sender, kind, chunk, micro-batch, step, length, checksum
// (docs/formats/frame.md). A frame that does not match is a clear error, never a tensor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/pending.h"
#include "comm/transport/transport.h"

namespace motley {

enum class FrameKind : std::uint8_t {
  kActivation = 1,
  kGradient = 2,
  kTargets = 3,
  kTiedGradient = 4,
  kVote = 5,
  kReplicaSum = 6,
};

// Names one message of one step between two ranks.
struct FrameId {
  FrameKind kind = FrameKind::kActivation;
  ChunkId chunk;  // that produced it
  MicroId micro;
  std::int64_t step = 0;

  friend bool operator==(const FrameId&, const FrameId&) = default;
};

[[nodiscard]] std::string to_words(
    const FrameId& id);  // "activation of chunk 0, micro-batch 3, step 7"

// A receive that was posted, and what it expects. wait() checks the header and the checksum.
class PendingFrame {
 public:
  PendingFrame() = default;

  [[nodiscard]] bool valid() const { return pending_.valid(); }

  [[nodiscard]] bool done() const { return pending_.done(); }

  // As Completion::tell. REQUIRES: valid().
  void tell(std::shared_ptr<Bell> bell) { pending_.tell(std::move(bell)); }

  // kPeer after the deadline or when the peer is lost; kCorrupt for a frame that does not match.
  // Each names the frame and the peer.
  [[nodiscard]] Result<Buffer> wait(Deadline deadline);

 private:
  friend class FrameLink;
  Pending pending_;
  FrameId id_;
  Rank from_;
  std::uint32_t epoch_ = 0;
  std::uint64_t plan_hash_ = 0;
};

// Not thread safe: one owner thread per link. A copy serves another thread; both count in
// wire_bytes(). The transport must outlive them.
class FrameLink {
 public:
  FrameLink(Transport& transport, Rank self, std::uint32_t epoch, std::uint64_t plan_hash);

  // Writes the header (with the payload's checksum) and sends. The pending returns the buffer.
  [[nodiscard]] Pending send(Rank to, const FrameId& id, Buffer buffer);
  [[nodiscard]] PendingFrame recv(Rank from, const FrameId& id, Buffer buffer);

  // Bytes sent so far, headers included.
  [[nodiscard]] std::uint64_t wire_bytes() const { return *wire_bytes_; }

 private:
  Transport& transport_;
  Rank self_;
  std::uint32_t epoch_;
  std::uint64_t plan_hash_;
  std::shared_ptr<std::atomic<std::uint64_t>> wire_bytes_;  // of all threads' links
};

// Every rank gives a payload of at most `bytes_max`; every rank gets all of them, [Rank]. A star
// around rank 0: two latencies, small payloads. The frame's chunk field carries the giver's rank.
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> all_gather_small(
    FrameLink& link,
    Rank self,
    int rank_count,
    std::int64_t step,
    std::span<const std::byte> mine,
    std::size_t bytes_max,
    Deadline deadline);

}  // namespace motley
