#include "comm/tcp/tcp_handshake.h"

#include <utility>

namespace motley {

using Socket = boost::asio::ip::tcp::socket;

std::shared_ptr<TcpHandshake> TcpHandshake::start(
    TcpStream stream, const Hello& mine, bool initiated, Accept accept, Done done) {
  std::shared_ptr<TcpHandshake> handshake(
      new TcpHandshake(std::move(stream), mine, initiated, std::move(accept), std::move(done)));
  handshake->wait(Socket::wait_write);  // ready at once, so that done is never called from start()
  return handshake;
}

TcpHandshake::TcpHandshake(
    TcpStream stream, const Hello& mine, bool initiated, Accept accept, Done done)
    : stream_(std::move(stream)),
      mine_(mine),
      initiated_(initiated),
      accept_(std::move(accept)),
      done_(std::move(done)) {
  mine_.local = mine_.local && stream_->ends_share_address();
  if (mine_.local && initiated_) offer_memory();
}

// If there is no memory, the two continue over the socket.
void TcpHandshake::offer_memory() {
  auto memory = SharedMemory::make(RingPair::kBytes);
  if (!memory.ok()) return;
  memory_.emplace(std::move(memory).value());
  mine_.memory = memory_->offer();
}

void TcpHandshake::open_memory() {
  auto memory = SharedMemory::open(theirs_.memory, RingPair::kBytes);
  if (!memory.ok()) return;
  memory_.emplace(std::move(memory).value());
  mine_.memory = memory_->offer();
}

Result<void> TcpHandshake::use_local_channel() {
  MOTLEY_TRY(stream_->use_local_channel());
  if (!memory_.has_value() || theirs_.memory != mine_.memory) return {};
  stream_->share(
      {std::move(*memory_), initiated_ ? RingPair::End::kOffering : RingPair::End::kOpening});
  return {};
}

void TcpHandshake::cancel() {
  done_ = nullptr;
  stream_.reset();
}

void TcpHandshake::wait(Socket::wait_type for_what) {
  stream_->socket().async_wait(
      for_what, [self = shared_from_this()](const boost::system::error_code& /*stopped*/) {
        if (self->done_ != nullptr) self->proceed();
      });
}

void TcpHandshake::proceed() {
  const Result<bool> finished = advance();
  if (finished.ok() && !*finished) {
    return wait(stream_->blocked() ? Socket::wait_write : Socket::wait_read);
  }
  const Done done = std::exchange(done_, nullptr);
  if (finished.ok()) return done(theirs_);
  stream_.reset();
  done(finished.error());
}

Result<bool> TcpHandshake::advance() {
  if (!proved_) {
    MOTLEY_ASSIGN(proved_, stream_->handshake());
    if (!proved_) return false;
  }
  MOTLEY_ASSIGN(const bool met, exchange_hellos());
  if (met && mine_.local && theirs_.local) MOTLEY_TRY(use_local_channel());
  return met;
}

// Returns true once both hellos are exchanged.
Result<bool> TcpHandshake::exchange_hellos() {
  if (initiated_) {
    MOTLEY_ASSIGN(const bool sent, send_hello());
    return sent ? receive_hello() : Result<bool>(false);
  }
  MOTLEY_ASSIGN(const bool received, receive_hello());
  return received ? send_hello() : Result<bool>(false);
}

// Returns true once the hello is sent.
Result<bool> TcpHandshake::send_hello() {
  std::array<std::byte, kHelloBytes> bytes;
  write_hello(mine_, bytes);
  MOTLEY_ASSIGN(const std::size_t count,
                stream_->write({std::span<const std::byte>(bytes).subspan(sent_bytes_), {}}));
  sent_bytes_ += count;
  return sent_bytes_ == kHelloBytes && !stream_->blocked();
}

// Returns true once an acceptable hello has arrived.
Result<bool> TcpHandshake::receive_hello() {
  if (received_bytes_ == kHelloBytes) return true;
  while (received_bytes_ < kHelloBytes) {
    MOTLEY_ASSIGN(const std::size_t count,
                  stream_->read(std::span(received_).subspan(received_bytes_)));
    if (count == 0) return false;
    received_bytes_ += count;
  }
  MOTLEY_ASSIGN(theirs_, read_hello(received_));
  MOTLEY_TRY(check_hello(theirs_, mine_));
  MOTLEY_TRY(accept_(theirs_));
  mine_.to = theirs_.from;
  if (!initiated_ && mine_.local && theirs_.local) open_memory();
  return true;
}

}  // namespace motley
