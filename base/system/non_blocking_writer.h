// NonBlockingWriter: text for people on a descriptor that somebody may have stopped reading (a
// pager, a stopped terminal, a full pipe). Whoever writes is never held up for longer than
// kPatience_s: a thread of its own writes, and while it is stuck further texts are dropped. As long
// as somebody reads, write() returns when the text is written, so that the order of several streams
// stays.
#pragma once

#include <memory>
#include <string_view>

namespace motley {

class NonBlockingWriter {
 public:
  // The descriptor must stay open; the thread starts with the first text.
  explicit NonBlockingWriter(int fd);
  ~NonBlockingWriter();  // gives a text that is being written kLastPatience_s
  NonBlockingWriter(const NonBlockingWriter&) = delete;
  NonBlockingWriter& operator=(const NonBlockingWriter&) = delete;

  // Whether the text was taken; false: an earlier one is not through, or there is no thread that
  // could write it, which the next text tries to start again. One thread at a time.
  bool write(std::string_view text);

 private:
  static constexpr double kPatience_s = 0.1;
  static constexpr double kLastPatience_s = 1;

  struct State;
  [[nodiscard]] bool start();  // the thread; false where none can be started
  static void write_texts(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // a thread that is stuck outlives this
};

}  // namespace motley
