// FrameSender: fills the frames that a rank sends and sends them, by its caller's thread or beside
// it on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/buffer_pool.h"
#include "comm/transport/pending.h"

namespace motley {

class FrameSender {
 public:
  // Fills the payload and returns its bytes, or why there is none. Called once, on the thread that
  // fills; whatever it reads must stay as it is until then.
  using Write = std::function<Result<std::size_t>(std::span<std::byte> room)>;

  struct Frame {
    Rank to;
    FrameId id;
    std::size_t bytes_max = 0;
    Write write;
  };

  // The link's transport must outlive it. `beside`: on a thread of its own.
  FrameSender(const FrameLink& link, Patience patience, bool beside);
  // Abandons what is under way.
  ~FrameSender();
  FrameSender(const FrameSender&) = delete;
  FrameSender& operator=(const FrameSender&) = delete;

  // Beside the caller: waits while kWaitingMax frames are still to be filled, which takes no
  // message. kPeer when an earlier frame could not be sent, or what its Write returned.
  [[nodiscard]] Result<void> send(Frame frame);

  // Why nothing more is sent, beside the caller; nothing where all is well.
  [[nodiscard]] std::optional<Error> failure();

  // Waits until all frames have been taken. kPeer when one is not in time.
  [[nodiscard]] Result<void> finish();

 private:
  static constexpr std::size_t kWaitingMax = 2;

  struct Sent {
    Pending pending;
    std::string words;
  };

  void work();
  [[nodiscard]] Result<void> carry_out(const Frame& frame);
  // Takes back the buffers of sends that are done; errors of sends surface here.
  [[nodiscard]] Result<void> reclaim(bool wait_for_all);

  // These belong to the thread that fills, and to finish() while nothing is to be filled.
  FrameLink link_;
  const Patience patience_;
  BufferPool buffers_;
  std::vector<Sent> sent_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;          // guarded by mutex_
  bool filling_ = false;         // guarded by mutex_
  std::deque<Frame> waiting_;    // guarded by mutex_
  std::optional<Error> failed_;  // guarded by mutex_
  std::thread thread_;           // only when beside
};

}  // namespace motley
