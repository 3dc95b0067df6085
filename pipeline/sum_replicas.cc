#include "pipeline/sum_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"

namespace motley {
namespace {

// Two messages a piece between each pair of ranks, told apart by the micro-batch field.
enum Phase : std::int32_t { kAddend, kSum, kPhaseCount };

class Summation {
 public:
  Summation(FrameLink& link, Rank self, const ReplicaSum& sum, std::span<float> values)
      : link_(link),
        sum_(sum),
        values_(values),
        self_(
            static_cast<std::size_t>(std::ranges::find(sum.holders, self) - sum.holders.begin())) {
    MOTLEY_CHECK(self_ < sum.holders.size() && sum.holders.size() > 1,
                 "rank {} sums chunk {} with nobody", self.value, sum.chunk.value);
    // As each rank has a message with each other at a time, the pieces share the bound.
    piece_floats_ = std::max(kPieceFloatsMin, sum.piece_floats_max / (sum.holders.size() - 1));
    pieces_ = (part(0, sum.holders.size()).size() + piece_floats_ - 1) / piece_floats_;
  }

  Result<double> run() {
    for (piece_ = 0; piece_ < pieces_; ++piece_) MOTLEY_TRY(sum_piece());
    return wait_s_;
  }

 private:
  static constexpr std::size_t kPieceFloatsMin = 1024;

  Result<void> sum_piece() {
    std::vector<PendingFrame> addends = receive(kAddend);
    std::vector<PendingFrame> sums = receive(kSum);
    for (std::size_t i = 0; i < sum_.holders.size(); ++i) {
      if (i != self_) send(i, kAddend, piece_of(i));
    }
    MOTLEY_TRY(add_up(addends));
    for (std::size_t i = 0; i < sum_.holders.size(); ++i) {
      if (i != self_) send(i, kSum, piece_of(self_));
    }
    for (std::size_t i = 0; i < sum_.holders.size(); ++i) {
      if (i == self_) continue;
      MOTLEY_ASSIGN(const Buffer buffer, take(sums[i], piece_of(i)));
      std::memcpy(piece_of(i).data(), buffer.payload().data(), buffer.payload_bytes());
    }
    return finish_sends();
  }

  // Makes this rank's piece the sum of everybody's, in the order of the ranks.
  Result<void> add_up(std::vector<PendingFrame>& addends) {
    const std::span<float> mine = piece_of(self_);
    total_.assign(mine.size(), 0.0F);
    for (std::size_t i = 0; i < addends.size(); ++i) {
      if (i == self_) {
        add(std::as_bytes(mine));
        continue;
      }
      MOTLEY_ASSIGN(const Buffer buffer, take(addends[i], mine));
      add(buffer.payload());
    }
    std::ranges::copy(total_, mine.begin());
    return {};
  }

  void add(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < total_.size(); ++i) {
      float value;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      total_[i] += value;
    }
  }

  // [holder]; nothing is received from this rank itself.
  std::vector<PendingFrame> receive(Phase phase) {
    std::vector<PendingFrame> frames(sum_.holders.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (i == self_) continue;
      const std::size_t from_part = phase == kAddend ? self_ : i;
      frames[i] = link_.recv(sum_.holders[i], id(phase), Buffer(piece_of(from_part).size_bytes()));
    }
    return frames;
  }

  void send(std::size_t to, Phase phase, std::span<const float> piece) {
    Buffer buffer(piece.size_bytes());
    buffer.set_payload_bytes(piece.size_bytes());
    if (!piece.empty()) std::memcpy(buffer.payload().data(), piece.data(), piece.size_bytes());
    sent_.push_back(link_.send(sum_.holders[to], id(phase), std::move(buffer)));
  }

  Result<Buffer> take(PendingFrame& frame, std::span<const float> piece) {
    const double start_s = now_s();
    auto buffer = frame.wait(Deadline::after_s(sum_.timeout_s));
    wait_s_ += now_s() - start_s;
    if (buffer.ok() && buffer->payload_bytes() != piece.size_bytes()) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} has {} bytes instead of {}", to_words(id(kAddend)),
                               buffer->payload_bytes(), piece.size_bytes()),
                   "the peer runs another configuration", "start all stages from one launcher"};
    }
    return buffer;
  }

  Result<void> finish_sends() {
    const double start_s = now_s();
    for (Pending& sent : std::exchange(sent_, {})) {
      MOTLEY_TRY(sent.wait(Deadline::after_s(sum_.timeout_s),
                           fmt::format("the other ranks to take the {}", to_words(id(kSum)))));
    }
    wait_s_ += now_s() - start_s;
    return {};
  }

  // The piece under way of a holder's part; the parts' sizes differ by a value at most, so the last
  // may be empty in some.
  std::span<float> piece_of(std::size_t holder) const {
    const std::span<float> whole = part(holder, sum_.holders.size());
    const std::size_t first = std::min(whole.size(), piece_ * piece_floats_);
    return whole.subspan(first, std::min(piece_floats_, whole.size() - first));
  }

  // The first parts take what does not divide.
  std::span<float> part(std::size_t holder, std::size_t count) const {
    const std::size_t each = values_.size() / count;
    const std::size_t longer = values_.size() % count;
    const std::size_t first = holder * each + std::min(holder, longer);
    return values_.subspan(first, each + (holder < longer ? 1 : 0));
  }

  FrameId id(Phase phase) const {
    const std::size_t number = piece_ * kPhaseCount + static_cast<std::size_t>(phase);
    return {FrameKind::kReplicaSum, sum_.chunk, MicroId{static_cast<std::int32_t>(number)},
            sum_.step};
  }

  FrameLink& link_;
  const ReplicaSum& sum_;
  std::span<float> values_;
  std::size_t self_;  // place among the holders
  std::size_t piece_floats_ = 0;
  std::size_t pieces_ = 0;
  std::size_t piece_ = 0;  // under way
  std::vector<float> total_;
  std::vector<Pending> sent_;
  double wait_s_ = 0;
};

}  // namespace

Result<double> sum_over_replicas(FrameLink& link,
                                 Rank self,
                                 const ReplicaSum& sum,
                                 std::span<float> values) {
  return Summation(link, self, sum, values).run();
}

}  // namespace motley
