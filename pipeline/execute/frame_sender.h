// FrameSender: fills and sends a rank's frames, on the caller's thread or asynchronously on a
// thread of its own.
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
  // Fills the payload and returns its size in bytes, or an error. Called once, on the filling
  // thread; what it reads must not change until then.
  using Write = std::function<Result<std::size_t>(std::span<std::byte> send_buffer)>;

  struct Frame {
    Rank to;
    FrameId id;
    std::size_t bytes_max = 0;
    Write write;
  };

  // The link's transport must outlive it. `beside`: fill on a thread of its own.
  FrameSender(const FrameLink& link, StallTimeout stall_timeout, bool beside);
  // Abandons frames under way.
  ~FrameSender();
  FrameSender(const FrameSender&) = delete;
  FrameSender& operator=(const FrameSender&) = delete;

  // With `beside`, waits while kWaitingMax frames are not filled yet, which does not depend on
  // other ranks. kPeer if an earlier frame could not be sent, or the error of its Write.
  [[nodiscard]] Result<void> send(Frame frame);

  // With `beside`, the error that stopped sending; nullopt if there is none.
  [[nodiscard]] std::optional<Error> failure();

  // Waits until all sends have completed. kPeer if one is late.
  [[nodiscard]] Result<void> finish();

 private:
  static constexpr std::size_t kWaitingMax = 2;

  struct Sent {
    Pending pending;
    std::string words;
  };

  void work();
  [[nodiscard]] Result<void> carry_out(const Frame& frame);
  // Takes back the buffers of finished sends; reports errors of sends.
  [[nodiscard]] Result<void> reclaim(bool wait_for_all);

  // Used by the filling thread, and by finish() while no frame is to be filled.
  FrameLink link_;
  const StallTimeout stall_timeout_;
  BufferPool buffers_;
  std::vector<Sent> sent_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;          // guarded by mutex_
  bool filling_ = false;         // guarded by mutex_
  std::deque<Frame> waiting_;    // guarded by mutex_
  std::optional<Error> failed_;  // guarded by mutex_
  std::thread thread_;           // only if `beside`
};

}  // namespace motley
