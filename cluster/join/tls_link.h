// TlsLink: one connection between a head and a joining machine: a non-blocking socket, TLS 1.3 and
// messages. It never waits; its owner polls fd(). One owner thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/join/join_frame.h"
#include "cluster/join/join_identity.h"

struct ssl_st;

namespace motley {

// Both ends show that they are alive this often.
inline constexpr double kJoinPing_s = 1;

class TlsLink {
 public:
  enum class Role { kHead, kMachine };

  // `socket` is connected and non-blocking. The identity must outlive the link.
  TlsLink(OwnedFd socket, const JoinIdentity& identity, Role role);
  TlsLink(const TlsLink&) = delete;
  TlsLink& operator=(const TlsLink&) = delete;
  ~TlsLink();

  [[nodiscard]] int fd() const { return socket_.get(); }

  // The events to poll for.
  [[nodiscard]] short events() const;

  // Continues the handshake, sends queued messages and receives, as far as possible without
  // waiting. kPeer if the connection has ended or the other end violates TLS.
  [[nodiscard]] Result<void> advance();

  // Whether both ends have proved to have their keys.
  [[nodiscard]] bool is_established() const { return is_established_; }

  // REQUIRES for both: is_established().
  [[nodiscard]] const std::string& peer_fingerprint() const { return peer_fingerprint_; }

  [[nodiscard]] const std::string& exported() const { return exported_; }

  // The next received message. Limited to kGreetingBytesMax until trust() is called.
  [[nodiscard]] Result<std::optional<JoinFrame>> next();

  void trust() { content_bytes_max_ = kJoinBytesMax; }

  // Queues a message; advance() sends it.
  void send(JoinKind kind, std::uint32_t channel, std::string_view content);

  [[nodiscard]] bool has_unsent() const { return sent_ < unsent_.size(); }

  [[nodiscard]] std::size_t unsent_bytes() const { return unsent_.size() - sent_; }

  // Whether the other end has sent any byte.
  [[nodiscard]] bool has_heard() const { return has_heard_; }

  // The time of the last received byte, or of the connection.
  [[nodiscard]] double heard_at_s() const { return heard_at_s_; }

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };

  [[nodiscard]] Result<void> shake_hands();
  [[nodiscard]] Result<void> send_queued();
  [[nodiscard]] Result<void> receive();
  // Whether the operation must be repeated once the socket is ready; else the error.
  [[nodiscard]] Result<void> later_or_error(int outcome, const char* doing);

  OwnedFd socket_;
  std::unique_ptr<ssl_st, Free> ssl_;
  JoinFrameReader reader_;
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
  std::size_t content_bytes_max_ = kGreetingBytesMax;
  bool is_established_ = false;
  bool wants_write_ = false;  // of the handshake
  bool has_heard_ = false;
  double heard_at_s_ = now_s();
  std::string peer_fingerprint_;
  std::string exported_;
};

}  // namespace motley
