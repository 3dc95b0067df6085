// TLS 1.3 between two holders of one key, without certificates: an external pre-shared key with an
// ephemeral Diffie-Hellman exchange (psk_dhe_ke, RFC 8446 section 2.2). Both ends prove that they
// hold the key, and a key that leaks later decrypts no earlier recording. One cipher suite
// (TLS_AES_128_GCM_SHA256), no tickets, no early data, nothing older than 1.3.
//
// A session converts bytes between two interfaces and touches no socket: plain bytes on one side,
// network bytes on the other. One owner thread per session; a context may be shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "comm/tcp/byte_queue.h"

struct bio_method_st;
struct ssl_ctx_st;
struct ssl_st;

namespace motley {

// The key and the TLS settings; shared by its sessions.
class TlsContext {
 public:
  // `identity` names the key to the other end, unencrypted. kInternal if OpenSSL lacks a required
  // feature.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> make(std::string key,
                                                                      std::string identity);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  struct Callbacks;  // OpenSSL's callbacks for the key
  TlsContext(std::string key, std::string identity);

  std::string key_;
  std::string identity_;
  ssl_ctx_st* ssl_context_ = nullptr;
  bio_method_st* bio_method_ = nullptr;
};

class TlsSession {
 public:
  enum class Role { kClient, kServer };

  // `rekey_bytes`: the bytes that one key encrypts before it is updated. AES-GCM is good for 2^24.5
  // records of 16 KiB (RFC 8446 section 5.5).
  TlsSession(std::shared_ptr<const TlsContext> context,
             Role role,
             std::uint64_t rekey_bytes = 64ULL << 30);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // The network side: space for received bytes, and the bytes to send.
  [[nodiscard]] std::span<std::byte> space() { return incoming_.space(); }

  void received(std::size_t count) { incoming_.add(count); }

  [[nodiscard]] std::span<const std::byte> outgoing() const { return outgoing_.bytes(); }

  void sent(std::size_t count) { outgoing_.drop(count); }

  // The plain side. Errors are kPeer, with OpenSSL's text as the cause. The session is then
  // unusable, but outgoing() may hold an alert that gives the other end the reason. Returns true
  // once both ends have proved that they hold the key; false: more bytes must arrive or leave
  // first. kUnauthorised if the other end has answered with such an alert: retrying will not help.
  [[nodiscard]] Result<bool> handshake();
  // Returns the number of bytes read; 0: more must arrive first. REQUIRES: handshake() returned
  // true.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> plain);
  // Returns the number of bytes accepted, at most one record; 0: outgoing() is full, and the same
  // bytes must be passed again. REQUIRES: handshake() returned true; plain is not empty.
  [[nodiscard]] Result<std::size_t> write(std::span<const std::byte> plain);

  // Ends the session at a position agreed on by both ends, with nothing left to send. Returns the
  // bytes received after the last record that was read, which are not TLS; they stay valid as long
  // as the session. kPeer if the other end had begun another record. REQUIRES: outgoing() is empty.
  [[nodiscard]] Result<std::span<const std::byte>> stop_encryption();

  // Enlarges both queues. They are small until the other end is authenticated.
  void grow();

 private:
  friend struct TlsBio;
  [[nodiscard]] Error failed(const char* doing, int outcome) const;

  const std::shared_ptr<const TlsContext> context_;  // the key is used until the last session ends
  const std::uint64_t rekey_bytes_;
  ByteQueue incoming_;
  ByteQueue outgoing_;
  ssl_st* ssl_ = nullptr;
  std::uint64_t written_bytes_ = 0;  // with the current key
  bool retries_ = false;             // the last write accepted nothing
};

}  // namespace motley
