// The two ends of one standard stream of a remote command: StreamSource reads a descriptor into
// messages, as far as the other end has granted; StreamSink writes received bytes to a descriptor
// and grants as many again. So a reader that stops delays only its own stream, and memory is
// bounded. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/system/owned_fd.h"
#include "cluster/join/poll_set.h"
#include "cluster/join/tls_link.h"

namespace motley {

// The bytes of a stream that may be under way.
inline constexpr std::size_t kStreamWindowBytes = std::size_t{256} << 10;

// Where the messages of a stream go.
struct StreamRoute {
  TlsLink* link = nullptr;
  JoinKind kind = JoinKind::kInput;
  const char* name = "input";  // in credits
  std::uint32_t channel = 0;
};

class StreamSource {
 public:
  // Makes the descriptor non-blocking.
  StreamSource(OwnedFd fd, StreamRoute route);

  void watch(PollSet& polled);

  void grant(std::uint64_t bytes) { granted_ += bytes; }

  // Whether the end was sent.
  [[nodiscard]] bool has_ended() const { return !fd_.open(); }

 private:
  void read();

  OwnedFd fd_;
  StreamRoute route_;
  std::uint64_t granted_ = kStreamWindowBytes;
};

class StreamSink {
 public:
  // Makes the descriptor non-blocking.
  StreamSink(OwnedFd fd, StreamRoute route);

  void watch(PollSet& polled);
  // Bytes of a message; none: the stream has ended. False if they exceed the window.
  [[nodiscard]] bool take(std::string_view bytes);
  // Closes the descriptor once all bytes are written.
  void end();

  [[nodiscard]] bool is_drained() const { return bytes_.empty(); }

 private:
  void write();

  OwnedFd fd_;
  StreamRoute route_;
  std::string bytes_;         // received and not yet written
  std::uint64_t passed_ = 0;  // written and not yet granted again
  bool ends_ = false;
};

}  // namespace motley
