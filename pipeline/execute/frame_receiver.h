// FrameReceiver: reads the frames that a rank expects: by its caller's thread when it asks for
// them, or beside it, on a thread of its own, as soon as they have come.
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
  // Puts a payload where it belongs. Called at most once, on the thread that reads.
  using Read = std::function<Result<void>(std::span<const std::byte> payload)>;

  struct Received {
    Buffer buffer;      // that the frame came in, to be used again
    double wait_s = 0;  // of the caller, for the frame
    double read_s = 0;  // of the caller, while it was read
  };

  // `beside`: on a thread of its own.
  explicit FrameReceiver(bool beside);
  // Abandons what is expected.
  ~FrameReceiver();
  FrameReceiver(const FrameReceiver&) = delete;
  FrameReceiver& operator=(const FrameReceiver&) = delete;

  // `posted` is the action that posts the receive. What `read` writes to must be there until wait()
  // has returned.
  void expect(const Action& posted, PendingFrame frame, Read read);

  // Waits until the frame has come and was read. Errors as PendingFrame::wait and Read.
  // REQUIRES: expect() was called for the action, and this was not.
  [[nodiscard]] Result<Received> wait(const Action& posted, Deadline deadline);

  // How many are expected and were not waited for.
  [[nodiscard]] std::size_t count() const { return entries_.size(); }

 private:
  struct Entry {
    Action posted;
    PendingFrame frame;  // of the thread that has taken the entry
    Read read;
    bool taken = false;                       // guarded by mutex_
    std::optional<Result<Received>> outcome;  // guarded by mutex_
  };

  void work();
  // The first that has come and that nobody has taken; nullptr: none.
  [[nodiscard]] Entry* first_come();
  [[nodiscard]] static Result<Received> carry_out(Entry& entry, Deadline deadline);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;       // guarded by mutex_
  std::list<Entry> entries_;  // changed by the caller alone, guarded by mutex_; in order of posting
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();  // a frame has come
  std::thread thread_;                                     // only when beside
};

}  // namespace motley
