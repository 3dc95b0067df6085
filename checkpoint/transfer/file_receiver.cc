// The receiving end. After a file error it refuses further parts but receives up to the last one,
// so that no frames are left on the connection. A protocol error ends the transfer at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "checkpoint/transfer/file_messages.h"
#include "checkpoint/transfer/file_transfer.h"
#include "checkpoint/transfer/received_file.h"
#include "checkpoint/transfer/stoppable_wait.h"
#include "comm/transport/buffer_pool.h"

namespace motley {
namespace {

std::uint32_t microseconds(double seconds) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp(seconds * 1e6, 0.0, kMost));
}

class FileReceiver {
 public:
  FileReceiver(FrameLink& link,
               Rank from,
               const FileOrder& order,
               const std::filesystem::path& path,
               std::optional<std::filesystem::path> name,
               const TransferRate& rate,
               const StallTimeout& stall_timeout,
               std::stop_token stop,
               ProgressCounter* work)
      : link_(link),
        from_(from),
        order_(order),
        rate_(rate),
        stall_timeout_(stall_timeout),
        stop_(std::move(stop)),
        name_(std::move(name)),
        file_(order, path, work) {}

  Result<void> run() {
    Result<void> received = receive_in_step();
    if (received.ok()) return received;
    return with_context(std::move(received).error(),
                        fmt::format("receiving {} of step {} from rank {}", order_.file.name,
                                    order_.step, from_.value));
  }

 private:
  Result<void> receive_in_step() {
    if (auto in_step = receive_all(); !in_step.ok()) {
      [[maybe_unused]] const Pending sent =
          answer({.kind = AckKind::kGone, .why = in_step.error()});
      return in_step;
    }
    return fault_;
  }

  // Returns the error of a transfer that is out of sync.
  Result<void> receive_all() {
    int refused_parts = 0;
    for (PendingFrame next = post(0);; ++part_) {
      MOTLEY_TRY(wait_until_done(next, stall_timeout_.deadline(), stop_,
                                 fmt::format("part {} from rank {}", part_, from_.value)));
      MOTLEY_ASSIGN(Buffer buffer, next.wait(stall_timeout_.deadline()));
      const double came_s = now_s();
      MOTLEY_ASSIGN(const FilePart part, read_part(std::as_const(buffer).payload()));
      if (part.kind == PartKind::kAborted) {
        if (fault_.ok()) fault_ = given_up(part.why);
        return {};
      }
      const bool is_last = part.kind == PartKind::kLast;
      if (!is_last) next = post(part_ + 1);  // received while this part is written
      if (!fault_.ok() && ++refused_parts > rate_.window) return endless();
      if (fault_.ok()) fault_ = take(part);
      Pending sent =
          answer(fault_.ok() ? PartAck{.took_us = microseconds(now_s() - came_s)}
                             : PartAck{.kind = AckKind::kNotWritten, .why = fault_.error()});
      if (is_last) return wait_for_answer(std::move(sent));
      buffers_.give(std::move(buffer));
    }
  }

  PendingFrame post(std::int64_t part) {
    return link_.recv(from_, FrameId::file_part(order_.stream, part, order_.step),
                      buffers_.take(part_buffer_bytes(rate_.part_bytes)));
  }

  Pending answer(const PartAck& answer) {
    return link_.send(from_, FrameId::file_ack(order_.stream, part_, order_.step),
                      ack_buffer(answer));
  }

  // Waits until the last answer has been sent. The transfer's result does not depend on it.
  Result<void> wait_for_answer(Pending sent) {
    [[maybe_unused]] const auto left =
        wait_until_done(sent, stall_timeout_.deadline(), stop_, "the last answer to leave");
    return {};
  }

  Result<void> take(const FilePart& part) {
    if (part_ > 0) {
      MOTLEY_TRY(file_.take(part.content));
    } else {
      std::uint64_t file_bytes = 0;
      if (part.content.size() != kFileSizeBytes) {
        return Error{ErrorCode::kCorrupt, "malformed part of a file",
                     fmt::format("the file's size has {} bytes", part.content.size()),
                     "start all ranks from the same version of Motley"};
      }
      std::memcpy(&file_bytes, part.content.data(), kFileSizeBytes);
      MOTLEY_TRY(file_.begin(file_bytes));
    }
    if (part.kind != PartKind::kLast) return {};
    return name_ ? file_.finish_as(*name_) : file_.finish();
  }

  [[nodiscard]] Error given_up(const Error& why) const {
    return with_context(why, fmt::format("rank {} could not send it", from_.value));
  }

  [[nodiscard]] Error endless() const {
    return {ErrorCode::kCorrupt, fmt::format("rank {} continues a refused transfer", from_.value),
            fmt::format("more than {} parts were received", rate_.window),
            "start all ranks from the same version of Motley"};
  }

  FrameLink& link_;
  const Rank from_;
  const FileOrder& order_;
  const TransferRate& rate_;
  const StallTimeout& stall_timeout_;
  const std::stop_token stop_;
  const std::optional<std::filesystem::path> name_;  // final name; nullopt: its path

  std::int64_t part_ = 0;  // awaited, or received last
  Result<void> fault_;     // the first error that left both ends in sync
  ReceivedFile file_;
  BufferPool buffers_;
};

void check_rate(const TransferRate& rate) {
  MOTLEY_CHECK(rate.part_bytes > 0 && rate.window > 0, "parts of {} bytes, {} in flight",
               rate.part_bytes, rate.window);
}

}  // namespace

Result<void> receive_file(FrameLink& link,
                          Rank from,
                          const FileOrder& order,
                          const std::filesystem::path& path,
                          const TransferRate& rate,
                          const StallTimeout& stall_timeout,
                          std::stop_token stop,
                          ProgressCounter* work) {
  check_rate(rate);
  return FileReceiver(link, from, order, path, {}, rate, stall_timeout, std::move(stop), work)
      .run();
}

Result<void> receive_into_shards(FrameLink& link,
                                 Rank from,
                                 const FileOrder& order,
                                 const ShardFolder& part,
                                 const TransferRate& rate,
                                 const StallTimeout& stall_timeout,
                                 std::stop_token stop,
                                 ProgressCounter* work) {
  check_rate(rate);
  const std::filesystem::path path =
      part.folder / fmt::format(".{}.{}", order.file.name, part.launch);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return FileReceiver(link, from, order, path, part.folder / order.file.name, rate, stall_timeout,
                      std::move(stop), work)
      .run();
}

}  // namespace motley
