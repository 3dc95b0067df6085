// NonBlockingWriter: writes text for people to a descriptor whose reader may have stopped (a pager,
// a stopped terminal, a full pipe). A background thread writes; write() blocks its caller for at
// most kWriteWait_s, and texts that arrive while the thread is blocked are dropped. While the
// reader keeps up, write() returns after the text was written, so that the order of several streams
// is preserved.
#pragma once

#include <memory>
#include <string_view>

namespace motley {

class NonBlockingWriter {
 public:
  // The descriptor is borrowed and must stay open; the thread starts with the first text.
  explicit NonBlockingWriter(int fd);
  ~NonBlockingWriter();  // waits for a text in progress, at most kLastWait_s
  NonBlockingWriter(const NonBlockingWriter&) = delete;
  NonBlockingWriter& operator=(const NonBlockingWriter&) = delete;

  // Returns whether the text was accepted. False: an earlier text is still in progress, or the
  // thread cannot be started; the next call tries to start it again. One calling thread at a time.
  bool write(std::string_view text);

 private:
  static constexpr double kWriteWait_s = 0.1;
  static constexpr double kLastWait_s = 1;

  struct State;
  [[nodiscard]] bool start_thread();  // false if the system refuses
  static void write_texts(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with the thread, which outlives this while it is blocked
};

}  // namespace motley
