// The head's ends of the channels of one joined machine: a command, whose standard streams are
// those of a process of this machine, and a transfer of files. One owner thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/join/head/local_socket.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/poll_set.h"
#include "cluster/join/stream_window.h"
#include "cluster/join/tls_link.h"

namespace motley {

class HeadChannel {
 public:
  // `client`: the connection of the process that asked.
  HeadChannel(OwnedFd client, TlsLink& link, std::uint32_t channel);
  virtual ~HeadChannel() = default;
  HeadChannel(const HeadChannel&) = delete;
  HeadChannel& operator=(const HeadChannel&) = delete;

  virtual void watch(PollSet& polled) = 0;
  // Handles a message of the machine. An error if it violates the protocol.
  [[nodiscard]] virtual Result<void> take(const JoinFrame& frame) = 0;

  // Ends the channel: the process that asked gets `exit` as its answer.
  void answer(const JoinExit& exit);

  [[nodiscard]] bool is_over() const { return is_over_; }

 protected:
  [[nodiscard]] const OwnedFd& client() const { return client_; }

  [[nodiscard]] TlsLink& link() const { return link_; }

  [[nodiscard]] std::uint32_t channel() const { return channel_; }

  // The process that asked has ended: so does what it asked for.
  void abandon();

 private:
  OwnedFd client_;
  TlsLink& link_;
  const std::uint32_t channel_;
  bool is_over_ = false;
};

class CommandChannel : public HeadChannel {
 public:
  // Starts the command there. `streams`: standard input, output and errors of the process.
  CommandChannel(OwnedFd client,
                 std::vector<OwnedFd> streams,
                 TlsLink& link,
                 std::uint32_t channel,
                 const JoinWords& command);

  void watch(PollSet& polled) override;
  [[nodiscard]] Result<void> take(const JoinFrame& frame) override;

 private:
  void hear_client();

  StreamSource input_;
  StreamSink output_;
  StreamSink errors_;
  std::optional<JoinExit> exit_;
};

// Offers files, whose names the process that asked sends, and sends the pieces that the machine
// wants. It reads no other files.
class FilesChannel : public HeadChannel {
 public:
  FilesChannel(OwnedFd client, TlsLink& link, std::uint32_t channel);

  void watch(PollSet& polled) override;
  [[nodiscard]] Result<void> take(const JoinFrame& frame) override;

 private:
  void hear_client();
  void send_piece(const WantedPiece& want);
  void report();  // the bytes sent so far, to the process that asked

  std::vector<OfferedFile> files_;
  std::uint64_t open_file_ = 0;  // index of the one behind fd_
  OwnedFd fd_;
  std::uint64_t sent_bytes_ = 0;
  double reported_at_s_ = 0;
};

}  // namespace motley
