#include "comm/frames/frame_link.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "comm/frames/frame_header.h"

namespace motley {
namespace {

constexpr const char* kSamePlan = "start all ranks from the same plan, in the same launch";

const char* allreduce_words(FrameKind kind) {
  switch (kind) {
    case FrameKind::kTiedGradient:
      return "all-reduce of the tied gradient";
    case FrameKind::kPseudoGradient:
      return "all-reduce of the pseudo-gradients";
    case FrameKind::kTiedPseudoGradient:
      return "all-reduce of the tied pseudo-gradient";
    default:
      return "all-reduce of the gradients";
  }
}

std::string allreduce_words(FrameKind kind, std::int32_t chunk) {
  const char* const words = allreduce_words(kind);
  return is_allreduce_of_tied(kind) ? words : fmt::format("{} of chunk {}", words, chunk);
}

// The frame's name without the step.
std::string what_of(const FrameId& id) {
  const auto part = [&] {
    return fmt::format("bucket {}, phase {}", id.number() / BucketPhase::kPhases,
                       id.number() % BucketPhase::kPhases);
  };
  switch (id.kind()) {
    case FrameKind::kActivation:
      return fmt::format("activation of chunk {}, micro-batch {}", id.source(), id.number());
    case FrameKind::kGradient:
      return fmt::format("gradient of chunk {}, micro-batch {}", id.source(), id.number());
    case FrameKind::kTargets:
      return fmt::format("targets of micro-batch {}", id.number());
    case FrameKind::kTiedGradient:
    case FrameKind::kReplicaAllreduce:
    case FrameKind::kPseudoGradient:
    case FrameKind::kTiedPseudoGradient:
      return fmt::format("{}, {}", allreduce_words(id.kind(), id.source()), part());
    case FrameKind::kVote:
      return id == FrameId::all_votes(id.step()) ? "all votes"
                                                 : fmt::format("vote of rank {}", id.source());
    case FrameKind::kFilePart:
      return fmt::format("{}part {} of file {}", id.number() % 2 == 0 ? "" : "answer to ",
                         id.number() / 2, id.source());
    case FrameKind::kMemory:
      return fmt::format("{}offer of shared memory for the {}",
                         id.number() % 2 == 0 ? "" : "answer to ",
                         allreduce_words(static_cast<FrameKind>(id.number() / 2), id.source()));
  }
  return fmt::format("frame of unknown kind {}", static_cast<int>(id.kind()));
}

// Frames that are needed only as part of a larger whole: the values of micro-batches are sent
// first.
bool is_bulk(FrameKind kind) {
  return is_allreduce(kind) || kind == FrameKind::kFilePart;
}

// Frames that belong to the training, whatever transport carries them.
bool is_counted(FrameKind kind) {
  return kind != FrameKind::kFilePart && kind != FrameKind::kMemory;
}

// The kind and the two numbers in 8 + 16 + 24 bits. The tag does not contain the step;
// check_frame() checks it instead.
Tag tag_of(const FrameId& id) {
  MOTLEY_CHECK(
      id.source() >= 0 && id.source() < (1 << 16) && id.number() >= 0 && id.number() < (1 << 24),
      "{} does not fit a tag", to_words(id));
  return (is_bulk(id.kind()) ? kBulkTag : 0) | static_cast<Tag>(id.kind()) << 40 |
         static_cast<Tag>(id.source()) << 24 | static_cast<Tag>(id.number());
}

Error mismatch(const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kCorrupt, "the received frame does not match", cause, remedy};
}

// Checks that `buffer` holds the frame described by `expected`, whose payload fields are not used.
Result<void> check_frame(const Buffer& buffer, const FrameHeader& expected) {
  MOTLEY_ASSIGN(const FrameHeader header, read_header(buffer.header().first<kFrameHeaderBytes>()));
  if (header.epoch != expected.epoch) {
    return mismatch(fmt::format("its epoch is {}, this rank's is {}", header.epoch, expected.epoch),
                    "end leftover processes of earlier launches");
  }
  if (header.plan_hash != expected.plan_hash) {
    return mismatch(fmt::format("its plan is {:016x}, this rank's is {:016x}", header.plan_hash,
                                expected.plan_hash),
                    kSamePlan);
  }
  if (header.sender != expected.sender) {
    return mismatch(fmt::format("rank {} sent it", header.sender.value), kSamePlan);
  }
  if (header.id != expected.id) {
    return mismatch(fmt::format("it is {}", to_words(header.id)), kSamePlan);
  }
  if (header.payload_bytes != buffer.payload_bytes()) {
    return mismatch(fmt::format("its header declares {} bytes of payload, but it has {}",
                                header.payload_bytes, buffer.payload_bytes()),
                    "check the network and the memory");
  }
  if (header.payload_hash != hash64(buffer.payload())) {
    return mismatch("its payload was damaged in transit", "check the network and the memory");
  }
  return {};
}

}  // namespace

std::string to_words(const FrameId& id) {
  return fmt::format("{}, step {}", what_of(id), id.step());
}

void TrafficCounter::add_sent(Rank to, std::uint64_t bytes) {
  sent_ += bytes;
  const std::lock_guard lock(mutex_);
  if (sent_to_.size() <= to.index()) sent_to_.resize(to.index() + 1);
  sent_to_[to.index()] += bytes;
}

std::vector<std::uint64_t> TrafficCounter::sent_to() const {
  const std::lock_guard lock(mutex_);
  return sent_to_;
}

Result<Buffer> PendingFrame::wait(Deadline deadline) {
  const std::string what = fmt::format("{} from rank {}", to_words(id_), from_.value);
  MOTLEY_ASSIGN(Buffer buffer, pending_.wait(deadline, what));
  const FrameHeader expected{epoch_, plan_hash_, from_, id_, 0, 0};
  if (auto intact = check_frame(buffer, expected); !intact.ok()) {
    return with_context(std::move(intact).error(), fmt::format("waiting for {}", what));
  }
  if (is_counted(id_.kind())) traffic_->add_received(buffer.message().size() + shared_bytes_);
  return buffer;
}

FrameLink::FrameLink(Transport& transport, Rank self, std::uint32_t epoch, std::uint64_t plan_hash)
    : transport_(transport),
      self_(self),
      epoch_(epoch),
      plan_hash_(plan_hash),
      traffic_(std::make_shared<TrafficCounter>()) {}

Pending FrameLink::send(Rank to, const FrameId& id, Buffer buffer, std::size_t shared_bytes) {
  const FrameHeader header{epoch_,
                           plan_hash_,
                           self_,
                           id,
                           buffer.payload_bytes(),
                           hash64(std::as_const(buffer).payload())};
  write_header(header, buffer.header().first<kFrameHeaderBytes>());
  if (is_counted(id.kind())) traffic_->add_sent(to, buffer.message().size() + shared_bytes);
  return transport_.send(to, tag_of(id), std::move(buffer));
}

PendingFrame FrameLink::recv(Rank from,
                             const FrameId& id,
                             Buffer buffer,
                             std::size_t shared_bytes) {
  PendingFrame frame;
  frame.pending_ = transport_.recv(from, tag_of(id), std::move(buffer));
  frame.id_ = id;
  frame.from_ = from;
  frame.epoch_ = epoch_;
  frame.plan_hash_ = plan_hash_;
  frame.shared_bytes_ = shared_bytes;
  frame.traffic_ = traffic_;
  return frame;
}

}  // namespace motley
