// FrameReceiver: reads the frames that a rank expects, either on the caller's thread in wait(), or
// asynchronously on a thread of its own as soon as they have arrived.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer.h"
#include "comm/transport/pending.h"
#include "pipeline/schedule/action.h"

namespace motley {

class FrameReceiver {
 public:
  // Stores a payload at its destination. Called at most once, on the reading thread.
  using Read = std::function<Result<void>(std::span<const std::byte> payload)>;

  struct Received {
    Buffer buffer;      // that held the frame, for reuse
    double wait_s = 0;  // the caller's wait for the frame
    double read_s = 0;  // the caller's time while the frame was read
  };

  // `beside`: read on a thread of its own.
  explicit FrameReceiver(bool beside);
  // Abandons expected frames.
  ~FrameReceiver();
  FrameReceiver(const FrameReceiver&) = delete;
  FrameReceiver& operator=(const FrameReceiver&) = delete;

  // `posted` is the action that posts the receive. The destination of `read` must stay valid until
  // wait() has returned.
  void expect(const Action& posted, PendingFrame frame, Read read);

  // Waits until the frame has arrived and was read. Errors as PendingFrame::wait and Read.
  // REQUIRES: expect() was called for the action, and wait() was not.
  [[nodiscard]] Result<Received> wait(const Action& posted, Deadline deadline);

  // The number of expected frames that were not waited for.
  [[nodiscard]] std::size_t count() const { return entries_.size(); }

 private:
  struct Entry {
    Action posted;
    PendingFrame frame;  // used by the thread that has taken the entry
    Read read;
    bool taken = false;                       // guarded by mutex_
    std::optional<Result<Received>> outcome;  // guarded by mutex_
  };

  void work();
  // The first entry that has arrived and is not taken; nullptr: none.
  [[nodiscard]] Entry* first_come();
  [[nodiscard]] static Result<Received> carry_out(Entry& entry, Deadline deadline);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;       // guarded by mutex_
  std::list<Entry> entries_;  // changed by the caller alone, guarded by mutex_; in order of posting
  std::shared_ptr<Notifier> notifier_ =
      std::make_shared<Notifier>();  // notified when a frame has arrived
  std::thread thread_;               // only if `beside`
};

}  // namespace motley
