// FrameLink: the pipeline's interface to a transport. Writes a header before each payload and
// checks the header of each arriving frame: epoch, plan, sender, kind, chunk, micro-batch, step,
// length, checksum (docs/formats/frame.md). A frame that does not match is an error and never
// becomes a tensor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
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
  kReplicaAllreduce = 6,
  kFilePart = 7,
  kMemory = 8,
  kPseudoGradient = 9,
  kTiedPseudoGradient = 10,
};

// Whether frames of the kind are messages of an all-reduce, and of a tied parameter's.
[[nodiscard]] constexpr bool is_allreduce_of_tied(FrameKind kind) {
  return kind == FrameKind::kTiedGradient || kind == FrameKind::kTiedPseudoGradient;
}

[[nodiscard]] constexpr bool is_allreduce(FrameKind kind) {
  return kind == FrameKind::kReplicaAllreduce || kind == FrameKind::kPseudoGradient ||
         is_allreduce_of_tied(kind);
}

// A message of an all-reduce of gradients: a bucket in one of its phases.
struct BucketPhase {
  static constexpr std::int32_t kPhases = 4;

  std::int32_t bucket = 0;
  std::int32_t phase = 0;  // from 0 to kPhases - 1
};

// FrameId names one message of one step between two ranks. The meaning of its two numbers depends
// on the kind, so each kind has its own factory function (docs/formats/frame.md).
class FrameId {
 public:
  constexpr FrameId() = default;

  // Values of a micro-batch that a chunk produced: an activation, a gradient or targets.
  constexpr FrameId(FrameKind kind, ChunkId chunk, MicroId micro, std::int64_t step)
      : FrameId(kind, chunk.value, micro.value, step) {}

  // A message of an all-reduce of that kind (is_allreduce). chunk: 0 of a tied parameter.
  [[nodiscard]] static constexpr FrameId allreduce(FrameKind kind,
                                                   ChunkId chunk,
                                                   BucketPhase part,
                                                   std::int64_t step) {
    return {kind, chunk.value, number_of(part), step};
  }

  // A rank's vote to rank 0, and rank 0's answer to all ranks.
  [[nodiscard]] static constexpr FrameId vote(Rank voter_rank, std::int64_t step) {
    return {FrameKind::kVote, voter_rank.value, 0, step};
  }

  [[nodiscard]] static constexpr FrameId all_votes(std::int64_t step) {
    return {FrameKind::kVote, 0, 1, step};
  }

  // A part of a file, and the answer to it. Stream numbers, from 0 to 65,535, distinguish the files
  // that one rank sends to another. Part numbers start at 0 and are unbounded: ids repeat after
  // kFileParts parts, and only the order distinguishes parts of equal id.
  [[nodiscard]] static constexpr FrameId file_part(std::int32_t stream,
                                                   std::int64_t part,
                                                   std::int64_t step) {
    return {FrameKind::kFilePart, stream, number_of(part), step};
  }

  [[nodiscard]] static constexpr FrameId file_ack(std::int32_t stream,
                                                  std::int64_t part,
                                                  std::int64_t step) {
    return {FrameKind::kFilePart, stream, number_of(part) + 1, step};
  }

  static constexpr std::int64_t kFileParts = std::int64_t{1} << 23;

  // An offer of memory to another rank of the sender's machine, for an all-reduce whose messages
  // are of the kind, and the answer to it.
  [[nodiscard]] static constexpr FrameId memory(FrameKind allreduce,
                                                ChunkId chunk,
                                                std::int64_t step) {
    return {FrameKind::kMemory, chunk.value, 2 * static_cast<std::int32_t>(allreduce), step};
  }

  [[nodiscard]] static constexpr FrameId memory_ack(FrameKind allreduce,
                                                    ChunkId chunk,
                                                    std::int64_t step) {
    return {FrameKind::kMemory, chunk.value, 2 * static_cast<std::int32_t>(allreduce) + 1, step};
  }

  // The id in a received header, unchecked.
  [[nodiscard]] static constexpr FrameId from_header(FrameKind kind,
                                                     std::int32_t source,
                                                     std::int32_t number,
                                                     std::int64_t step) {
    return {kind, source, number, step};
  }

  [[nodiscard]] constexpr FrameKind kind() const { return kind_; }

  // The header's chunk field: the chunk that made the payload or whose gradients are reduced, the
  // rank that voted, or the stream.
  [[nodiscard]] constexpr std::int32_t source() const { return source_; }

  // The header's micro-batch field: the micro-batch, the part of the all-reduce, vote or answer,
  // the part of the file or its answer, or the all-reduce of the memory offer or its answer.
  [[nodiscard]] constexpr std::int32_t number() const { return number_; }

  [[nodiscard]] constexpr std::int64_t step() const { return step_; }

  friend constexpr bool operator==(const FrameId&, const FrameId&) = default;

 private:
  constexpr FrameId(FrameKind kind, std::int32_t source, std::int32_t number, std::int64_t step)
      : kind_(kind), source_(source), number_(number), step_(step) {}

  [[nodiscard]] static constexpr std::int32_t number_of(BucketPhase part) {
    return part.bucket * BucketPhase::kPhases + part.phase;
  }

  // The number of a part of a file; the next number is that of its answer.
  [[nodiscard]] static constexpr std::int32_t number_of(std::int64_t part) {
    return static_cast<std::int32_t>(part % kFileParts * 2);
  }

  FrameKind kind_ = FrameKind::kActivation;
  std::int32_t source_ = 0;
  std::int32_t number_ = 0;
  std::int64_t step_ = 0;
};

// "activation of chunk 0, micro-batch 3, step 7", "vote of rank 2, step 7".
[[nodiscard]] std::string to_words(const FrameId& id);

// Training bytes carried by a rank's links: everything but parts of files and offers of memory.
// Values in shared memory that a message refers to count as part of it. Any thread.
class TrafficCounter {
 public:
  void add_sent(Rank to, std::uint64_t bytes);

  void add_received(std::uint64_t bytes) { received_ += bytes; }

  [[nodiscard]] std::uint64_t sent() const { return sent_; }

  [[nodiscard]] std::uint64_t received() const { return received_; }  // and waited for

  [[nodiscard]] std::vector<std::uint64_t> sent_to() const;

 private:
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> sent_to_;  // [Rank]; guarded by mutex_
};

// A posted receive and the frame that it expects. wait() checks the header and the checksum.
class PendingFrame {
 public:
  PendingFrame() = default;

  [[nodiscard]] bool valid() const { return pending_.valid(); }

  [[nodiscard]] bool done() const { return pending_.done(); }

  // Behaves as Completion::notify_when_done. REQUIRES: valid().
  void notify_when_done(std::shared_ptr<Notifier> notifier) {
    pending_.notify_when_done(std::move(notifier));
  }

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
  std::size_t shared_bytes_ = 0;
  std::shared_ptr<TrafficCounter> traffic_;
};

// Not thread safe: one owner thread per link. Another thread uses a copy; both add to the same byte
// counters. The transport must outlive all copies.
class FrameLink {
 public:
  FrameLink(Transport& transport, Rank self, std::uint32_t epoch, std::uint64_t plan_hash);

  // Writes the header (with the payload's checksum) and sends. The pending returns the buffer.
  // shared_bytes: size of the values in shared memory that the frame refers to.
  [[nodiscard]] Pending send(Rank to,
                             const FrameId& id,
                             Buffer buffer,
                             std::size_t shared_bytes = 0);
  [[nodiscard]] PendingFrame recv(Rank from,
                                  const FrameId& id,
                                  Buffer buffer,
                                  std::size_t shared_bytes = 0);

  [[nodiscard]] bool shares_memory(Rank peer) const { return transport_.shares_memory(peer); }

  // Training bytes sent so far, headers included.
  [[nodiscard]] std::uint64_t wire_bytes() const { return traffic_->sent(); }

  // The same by receiver, [Rank], up to the last rank that received any.
  [[nodiscard]] std::vector<std::uint64_t> sent_bytes() const { return traffic_->sent_to(); }

  // Training bytes sent and received, over all peers.
  [[nodiscard]] std::uint64_t moved_bytes() const {
    return traffic_->sent() + traffic_->received();
  }

 private:
  Transport& transport_;
  Rank self_;
  std::uint32_t epoch_;
  std::uint64_t plan_hash_;
  std::shared_ptr<TrafficCounter> traffic_;  // shared by the copies of all threads
};

// Each rank contributes a payload of at most `bytes_max`; every rank gets all of them, [Rank]. A
// star around rank 0: two latencies, small payloads.
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> all_gather_small(
    FrameLink& link,
    Rank self,
    int rank_count,
    std::int64_t step,
    std::span<const std::byte> mine,
    std::size_t bytes_max,
    Deadline deadline);

}  // namespace motley
