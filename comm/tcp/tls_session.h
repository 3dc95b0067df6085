// TLS 1.3 between two holders of one key, without certificates: an external pre-shared key with an
// ephemeral Diffie-Hellman exchange (psk_dhe_ke, RFC 8446 section 2.2), so that both ends prove
// that they hold the key and a key that leaks later opens nothing that was recorded before. One
// cipher suite (TLS_AES_128_GCM_SHA256), no tickets, no early data, nothing older than 1.3.
//
// A session moves bytes between two pairs of ends and touches no socket: plain bytes on one side,
// what travels on the other. One owner thread a session; a context may be shared.
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

// The key and the rules; outlives its sessions, which share it.
class TlsContext {
 public:
  // `identity` names the key to the other end, in clear. kInternal when OpenSSL lacks what it
  // needs.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> make(std::string key,
                                                                      std::string identity);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  struct Callbacks;  // that OpenSSL asks for the key
  TlsContext(std::string key, std::string identity);

  std::string key_;
  std::string identity_;
  ssl_ctx_st* ssl_context_ = nullptr;
  bio_method_st* bio_method_ = nullptr;
};

class TlsSession {
 public:
  enum class Role { kClient, kServer };

  // `rekey_bytes`: how much one key encrypts before the next takes its place. AES-GCM is good for
  // 2^24.5 records of 16 KiB (RFC 8446 section 5.5).
  TlsSession(std::shared_ptr<const TlsContext> context,
             Role role,
             std::uint64_t rekey_bytes = 64ULL << 30);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // The network's side: where bytes go that came, and which are to leave.
  [[nodiscard]] std::span<std::byte> room() { return incoming_.room(); }

  void received(std::size_t count) { incoming_.add(count); }

  [[nodiscard]] std::span<const std::byte> outgoing() const { return outgoing_.bytes(); }

  void sent(std::size_t count) { outgoing_.drop(count); }

  // The plain side. Errors are kPeer, with OpenSSL's words as the cause; the session is then over,
  // but outgoing() may hold an alert that tells the other end why.
  // True once both ends have proved that they hold the key; false: more must come or leave first.
  // kUnauthorised when the other end has answered with such an alert: trying again will not help.
  [[nodiscard]] Result<bool> handshake();
  // How many bytes were read; 0: more must come first. REQUIRES: handshake() gave true.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> plain);
  // How many bytes were taken, at most one record; 0: outgoing() is full, and the same bytes must
  // be given again. REQUIRES: handshake() gave true; plain is not empty.
  [[nodiscard]] Result<std::size_t> write(std::span<const std::byte> plain);

  // Ends the session at a place that both ends have agreed on, with nothing left to send: what has
  // come behind the last record that was read, and is not TLS. kPeer when the other end had begun
  // another record. The bytes stay where they are as long as the session. REQUIRES: outgoing() is
  // empty.
  [[nodiscard]] Result<std::span<const std::byte>> leave_off();

  // Lets both queues hold more. They are small while the other end has proved nothing.
  void grow();

 private:
  friend struct TlsBio;
  [[nodiscard]] Error failed(const char* doing, int outcome) const;

  const std::shared_ptr<const TlsContext> context_;  // its key serves until the last session ends
  const std::uint64_t rekey_bytes_;
  ByteQueue incoming_;
  ByteQueue outgoing_;
  ssl_st* ssl_ = nullptr;
  std::uint64_t written_bytes_ = 0;  // by the present key
  bool retries_ = false;             // the last write took nothing
};

}  // namespace motley
