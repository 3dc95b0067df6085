// The sending end. A file error at either end ends the transfer in sync: every part sent is
// answered, and no frames are left on the connection. Any other error ends it at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "checkpoint/input_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/transfer/file_messages.h"
#include "checkpoint/transfer/file_ranges.h"
#include "checkpoint/transfer/file_transfer.h"
#include "checkpoint/transfer/stoppable_wait.h"
#include "checkpoint/transfer/transfer_rate_limiter.h"
#include "comm/transport/buffer_pool.h"

namespace motley {
namespace {

// FileSource: the bytes of a file that a rank sends, in transfer order. One owner thread.
class FileSource {
 public:
  // kCorrupt if the file does not exist, has another size than in the order, or lacks ordered
  // tensors.
  [[nodiscard]] static Result<FileSource> open(const std::filesystem::path& path,
                                               const FileOrder& order);

  [[nodiscard]] std::uint64_t left_bytes() const { return left_bytes_; }

  // The next bytes. kCorrupt if the file ends before. REQUIRES: into.size() <= left_bytes().
  [[nodiscard]] Result<void> read(std::span<std::byte> into);

 private:
  FileSource(InputFile file, std::vector<FileRange> ranges);

  InputFile file_;
  std::vector<FileRange> ranges_;  // unread, from `range_` on
  std::size_t range_ = 0;
  std::uint64_t left_bytes_ = 0;  // over all ranges
};

FileSource::FileSource(InputFile file, std::vector<FileRange> ranges)
    : file_(std::move(file)), ranges_(std::move(ranges)) {
  for (const FileRange& range : ranges_) left_bytes_ += range.bytes;
}

Result<FileSource> FileSource::open(const std::filesystem::path& path, const FileOrder& order) {
  MOTLEY_ASSIGN(InputFile file, InputFile::open(path));
  if (file.bytes() != order.file.bytes) {
    return damaged_checkpoint(path.string(), fmt::format("it has {} bytes; the manifest says {}",
                                                         file.bytes(), order.file.bytes));
  }
  std::vector<FileRange> ranges = {whole_file(order)};
  if (order.tensors) {
    MOTLEY_ASSIGN(const std::string head, read_safetensors_head(file));
    MOTLEY_ASSIGN(ranges, ordered_tensors(order, head, path.string()));
    ranges.insert(ranges.begin(), FileRange{0, head.size(), "", ""});
  }
  return FileSource(std::move(file), std::move(ranges));
}

Result<void> FileSource::read(std::span<std::byte> into) {
  MOTLEY_CHECK(into.size() <= left_bytes_, "{} bytes of {}", into.size(), left_bytes_);
  while (!into.empty()) {
    FileRange& range = ranges_[range_];
    const auto part = into.first(std::min<std::uint64_t>(into.size(), range.bytes));
    MOTLEY_TRY(file_.read_at(range.offset, part));
    range.offset += part.size();
    range.bytes -= part.size();
    left_bytes_ -= part.size();
    into = into.subspan(part.size());
    if (range.bytes == 0) ++range_;
  }
  return {};
}

class FileSender {
 public:
  FileSender(FrameLink& link,
             Rank to,
             const FileOrder& order,
             const TransferRate& rate,
             const StallTimeout& stall_timeout,
             std::stop_token stop,
             ProgressCounter* work)
      : link_(link),
        to_(to),
        order_(order),
        rate_(rate),
        window_(rate.yields ? 1 : static_cast<std::size_t>(rate.window)),
        stall_timeout_(stall_timeout),
        stop_(std::move(stop)),
        work_(work),
        moved_bytes_(link.moved_bytes()) {}

  Result<void> run(const std::filesystem::path& path) {
    if (auto in_step = send_all(path); !in_step.ok()) {
      if (!is_ended_) give_up(in_step.error());
      return in_step;
    }
    return fault_;
  }

 private:
  struct UnderWay {
    std::int64_t part = 0;
    std::size_t bytes = 0;  // of content
    Pending sent;
    PendingFrame answer;
    double sent_s = 0;
  };

  // Returns the error of a transfer that is out of sync.
  Result<void> send_all(const std::filesystem::path& path) {
    auto source = FileSource::open(path, order_);
    if (!source.ok()) {
      fault_ = std::move(source).error();
      give_up(fault_.error());
      return {};
    }
    send_size(source->left_bytes() == 0);
    while (fault_.ok() && !is_ended_) {
      MOTLEY_TRY(wait_for_window());
      if (fault_.ok()) fault_ = send_next(*source);
    }
    if (!is_ended_) give_up(fault_.error());
    while (!under_way_.empty()) MOTLEY_TRY(settle());
    return {};
  }

  void send_size(bool is_last) {
    Buffer buffer(part_buffer_bytes(kFileSizeBytes));
    const auto content =
        begin_part(buffer, is_last ? PartKind::kLast : PartKind::kMoreFollow, kFileSizeBytes);
    std::ranges::copy(std::as_bytes(std::span(&order_.file.bytes, 1)), content.begin());
    send(std::move(buffer), is_last);
  }

  Result<void> send_next(FileSource& source) {
    const std::size_t bytes = std::min<std::uint64_t>(rate_.part_bytes, source.left_bytes());
    const bool is_last = bytes == source.left_bytes();
    Buffer buffer = buffers_.take(part_buffer_bytes(rate_.part_bytes));
    MOTLEY_TRY(
        source.read(begin_part(buffer, is_last ? PartKind::kLast : PartKind::kMoreFollow, bytes)));
    send(std::move(buffer), is_last);
    return {};
  }

  void send(Buffer buffer, bool is_last) {
    UnderWay part{next_part_++, buffer.payload_bytes() - kPartHeadBytes};
    part.answer = link_.recv(to_, FrameId::file_ack(order_.stream, part.part, order_.step),
                             Buffer(ack_buffer_bytes()));
    part.sent_s = now_s();
    part.sent = link_.send(to_, FrameId::file_part(order_.stream, part.part, order_.step),
                           std::move(buffer));
    under_way_.push_back(std::move(part));
    is_ended_ = is_last;
  }

  // This part is not answered.
  void give_up(const Error& why) {
    [[maybe_unused]] const Pending sent = link_.send(
        to_, FrameId::file_part(order_.stream, next_part_++, order_.step), aborted_part(why));
    is_ended_ = true;
  }

  // Waits until another part may be in flight.
  Result<void> wait_for_window() {
    while (under_way_.size() >= window_) MOTLEY_TRY(settle());
    if (pause_s_ == 0 || !fault_.ok()) return {};
    return pause_for(std::exchange(pause_s_, 0), stop_, "the link to be idle");
  }

  // Waits for the answer to the oldest part.
  Result<void> settle() {
    UnderWay part = std::move(under_way_.front());
    under_way_.pop_front();
    const std::string what = fmt::format("rank {} to receive part {}", to_.value, part.part);
    MOTLEY_TRY(wait_until_done(part.answer, stall_timeout_.deadline(), stop_, what));
    const double answered_s = now_s();
    MOTLEY_ASSIGN(const Buffer message, part.answer.wait(stall_timeout_.deadline()));
    MOTLEY_ASSIGN(PartAck answer, read_ack(message.payload()));
    if (answer.kind == AckKind::kGone) {
      is_ended_ = true;
      answer.why.code = ErrorCode::kPeer;
      return with_context(std::move(answer.why),
                          fmt::format("rank {} has disconnected", to_.value));
    }
    MOTLEY_ASSIGN(Buffer buffer, part.sent.wait(stall_timeout_.deadline(), what));
    buffers_.give(std::move(buffer));
    if (answer.kind == AckKind::kNotWritten) {
      if (fault_.ok()) fault_ = refused(answer.why);
      return {};
    }
    if (work_ != nullptr) work_->add_bytes(part.bytes);
    // Shorter parts are not comparable.
    if (rate_.yields && part.bytes == rate_.part_bytes) {
      const double took_s = answered_s - part.sent_s - 1e-6 * answer.took_us;
      pause_s_ = limiter_.pause_after_s({std::max(took_s, 0.0), frames_since_last()}, answered_s);
    }
    return {};
  }

  // In units of a part's bytes.
  [[nodiscard]] double frames_since_last() {
    const std::uint64_t before = std::exchange(moved_bytes_, link_.moved_bytes());
    return static_cast<double>(moved_bytes_ - before) / static_cast<double>(rate_.part_bytes);
  }

  [[nodiscard]] Error refused(const Error& why) const {
    return with_context(why, fmt::format("rank {} refused it", to_.value));
  }

  FrameLink& link_;
  const Rank to_;
  const FileOrder& order_;
  const TransferRate& rate_;
  const std::size_t window_;
  const StallTimeout& stall_timeout_;
  const std::stop_token stop_;
  ProgressCounter* const work_;

  std::int64_t next_part_ = 0;
  bool is_ended_ = false;  // the receiver expects no further part
  Result<void> fault_;     // the first error that left both ends in sync
  std::deque<UnderWay> under_way_;
  BufferPool buffers_;
  TransferRateLimiter limiter_;
  std::uint64_t moved_bytes_;  // of the link, at the last answer
  double pause_s_ = 0;         // before the next part
};

}  // namespace

Result<void> send_file(FrameLink& link,
                       Rank to,
                       const FileOrder& order,
                       const std::filesystem::path& path,
                       const TransferRate& rate,
                       const StallTimeout& stall_timeout,
                       std::stop_token stop,
                       ProgressCounter* work) {
  MOTLEY_CHECK(rate.part_bytes > 0 && rate.window > 0, "parts of {} bytes, {} in flight",
               rate.part_bytes, rate.window);
  auto sent = FileSender(link, to, order, rate, stall_timeout, std::move(stop), work).run(path);
  if (sent.ok()) return {};
  return with_context(std::move(sent).error(), fmt::format("sending {} of step {} to rank {}",
                                                           order.file.name, order.step, to.value));
}

}  // namespace motley
