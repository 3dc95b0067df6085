#include "comm/gloo/gloo_peer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <cstring>
#include <exception>

#include "comm/transport/comm_errors.h"
#include "comm/transport/take_first.h"

namespace motley {
namespace {

namespace gt = gloo::transport;

using std::chrono::milliseconds;

constexpr milliseconds kForever = std::chrono::hours(24 * 365);
constexpr milliseconds kAtOnce{1};

Deadline forever() {
  return Deadline::after_s(std::chrono::duration<double>(kForever).count());
}

}  // namespace

void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

GlooPeer::GlooPeer(const std::shared_ptr<gt::Device>& device,
                   Rank self,
                   Rank rank,
                   int rank_count,
                   StallTimeout stall_timeout,
                   std::uint64_t unexpected_bytes_max)
    : self_(self),
      rank_(rank),
      stall_timeout_(stall_timeout),
      context_(device->createContext(self.value, rank_count)),
      unexpected_quota_(unexpected_bytes_max) {
  context_->setTimeout(std::chrono::hours(1));  // wait_connected() ends connect() instead
  pair_ = context_->createPair(rank.value).get();
}

GlooPeer::~GlooPeer() {
  lose("this rank disconnected");
  for (std::thread* thread : {&watcher_, &reader_, &writer_}) {
    if (thread->joinable()) thread->join();
  }
}

void GlooPeer::start_connecting(std::vector<char> peer_address) {
  watcher_ = std::thread([this, address = std::move(peer_address)] { watch(address); });
}

Result<void> GlooPeer::wait_connected(Deadline deadline) {
  {
    std::unique_lock lock(mutex_);
    const auto decided = [&] { return connected_ || !lost_.empty(); };
    while (!changed_.wait_until(lock, deadline.time(), decided) && !deadline.passed()) {
    }
    if (connected_ && lost_.empty()) return {};
    if (decided()) return peer_unreachable(rank_, lost_);
  }
  lose("it did not connect in time");
  return peer_unreachable(rank_, "timed out");
}

// Copies `message` into the buffer of a receive and completes it.
void GlooPeer::deliver(Operation receive, std::span<const std::byte> message) const {
  const auto space = receive.buffer.message_space();
  if (message.size() <= space.size()) std::memcpy(space.data(), message.data(), message.size());
  receive.completion->finish(received(rank_, std::move(receive.buffer), message.size()));
}

Pending GlooPeer::send(Tag tag, Buffer buffer) {
  Operation operation{std::move(buffer)};
  Pending pending(operation.completion);
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) {
    sends_.push(tag, {tag, std::move(operation)});
    changed_.notify_all();
  } else {
    operation.completion->finish(peer_lost(rank_, lost_));
  }
  return pending;
}

Pending GlooPeer::recv(Tag tag, Buffer buffer) {
  Operation operation{std::move(buffer)};
  Pending pending(operation.completion);
  std::unique_lock lock(mutex_);
  if (auto early = take_first(early_, tag)) {
    unexpected_quota_.give(early->message().size());
    changed_.notify_all();
    lock.unlock();
    deliver(std::move(operation), early->message());
  } else if (lost_.empty()) {
    receives_[tag].push_back(std::move(operation));
    changed_.notify_all();
  } else {
    operation.completion->finish(peer_lost(rank_, lost_));
  }
  return pending;
}

void GlooPeer::lose(const std::string& cause) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return;
    lost_ = cause;
  }
  close_connection();
  std::deque<Operation> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (reading_.buffer != nullptr) reading_.buffer->abortWaitRecv();
    if (writing_.buffer != nullptr) writing_.buffer->abortWaitSend();
    for (auto& [tag, operation] : sends_.drain()) dropped.push_back(std::move(operation));
    for (auto& [tag, operations] : receives_) {
      for (auto& operation : operations) dropped.push_back(std::move(operation));
    }
    receives_.clear();
    changed_.notify_all();
  }
  for (auto& operation : dropped) operation.completion->finish(peer_lost(rank_, cause));
}

void GlooPeer::watch(const std::vector<char>& peer_address) {
  block_sigpipe();
  try {
    pair_->connect(peer_address);
    std::byte nothing{};
    const auto watched = context_->createUnboundBuffer(&nothing, sizeof nothing);
    watched->recv(rank_.value, kWatchSlot);
    reader_ = std::thread([this] { read(); });
    writer_ = std::thread([this] { write(); });
    watched->waitRecv(nullptr, kForever);
    lose("it sent an unexpected message");
  } catch (const std::exception& failure) {
    lose(failure.what());
  }
}

void GlooPeer::read() {
  block_sigpipe();
  MessageHeader header{};
  if (!receive(&header, sizeof header, kHeaderSlot, forever())) return;
  if (header.tag != kHelloTag || header.bytes != static_cast<std::uint64_t>(rank_.value)) {
    lose("another process answered at its address");
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    connected_ = true;
    changed_.notify_all();
  }
  while (receive(&header, sizeof header, kHeaderSlot, forever()) && read_message(header)) {
  }
}

bool GlooPeer::read_message(const MessageHeader& header) {
  if (header.tag >= kTagsEnd || header.bytes < kFrameHeaderBytes) {
    lose("it sent a malformed message");
    return false;
  }
  auto place = place_for(header);
  if (!place) return false;
  const auto space = place->buffer.message_space();
  const bool came = receive(space.data(), header.bytes, kMessageSlot, stall_timeout_.deadline());
  if (place->asked_for) {
    place->completion->finish(came ? received(rank_, std::move(place->buffer), header.bytes)
                                   : Result<Buffer>(peer_lost(rank_, loss())));
  } else if (came) {
    place->buffer.set_payload_bytes(header.bytes - kFrameHeaderBytes);
    keep(header.tag, std::move(place->buffer));
  }
  return came;
}

// The destination of a message: the receive posted for it, or a new buffer. Blocks while early
// messages exhaust their share of memory, until a receive for this message or an early one is
// posted.
std::optional<GlooPeer::Place> GlooPeer::place_for(const MessageHeader& header) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!lost_.empty()) return std::nullopt;
    const auto posted = receives_.find(header.tag);
    const bool fits = posted != receives_.end() &&
                      header.bytes <= posted->second.front().buffer.message_space().size();
    if (fits) {
      auto receive = take_first(receives_, header.tag);
      return Place{std::move(receive->buffer), std::move(receive->completion), true};
    }
    if (unexpected_quota_.take(header.bytes)) {
      return Place{Buffer(header.bytes - kFrameHeaderBytes), nullptr, false};
    }
    if (posted != receives_.end()) {
      lock.unlock();
      lose("it sent a message longer than any expected one");
      return std::nullopt;
    }
    changed_.wait(lock);
  }
}

// Stores a complete message that had no receive when it began. Its receive may have been posted
// since, or may be too small, which deliver() reports.
void GlooPeer::keep(Tag tag, Buffer message) {
  std::unique_lock lock(mutex_);
  auto receive = take_first(receives_, tag);
  if (!receive) {
    early_[tag].push_back(std::move(message));
    return;
  }
  unexpected_quota_.give(message.message().size());
  lock.unlock();
  deliver(std::move(*receive), message.message());
}

void GlooPeer::write() {
  block_sigpipe();
  MessageHeader header{kHelloTag, static_cast<std::uint64_t>(self_.value)};
  if (!send_whole(&header, sizeof header, kHeaderSlot)) return;
  while (auto next = next_send()) {
    auto& [tag, operation] = *next;
    const auto message = operation.buffer.message();
    header = {tag, message.size()};
    if (send_whole(&header, sizeof header, kHeaderSlot) &&
        send_whole(message.data(), message.size(), kMessageSlot)) {
      operation.completion->finish(std::move(operation.buffer));
    } else {
      operation.completion->finish(peer_lost(rank_, loss()));
    }
  }
}

std::optional<std::pair<Tag, GlooPeer::Operation>> GlooPeer::next_send() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !sends_.empty() || !lost_.empty(); });
  if (!lost_.empty()) return std::nullopt;
  return sends_.pop();
}

bool GlooPeer::receive(void* bytes, std::size_t count, Slot slot, Deadline deadline) {
  const auto buffer = context_->createUnboundBuffer(bytes, count);
  return enter(reading_, buffer.get(), deadline) && leave(reading_, [&] {
           buffer->recv(rank_.value, slot);
           return buffer->waitRecv(nullptr, kForever);
         });
}

bool GlooPeer::send_whole(void* bytes, std::size_t count, Slot slot) {
  const auto buffer = context_->createUnboundBuffer(bytes, count);
  return enter(writing_, buffer.get(), stall_timeout_.deadline()) && leave(writing_, [&] {
           buffer->send(rank_.value, slot);
           return buffer->waitSend(nullptr, kForever);
         });
}

void GlooPeer::tick() {
  {
    const std::lock_guard lock(mutex_);
    const auto stands_still = [](const Wait& wait) {
      return wait.buffer != nullptr && wait.deadline.passed();
    };
    if (!stands_still(reading_) && !stands_still(writing_)) return;
  }
  lose(fmt::format("a transfer between the two stalled for {:.3g} s", stall_timeout_.timeout_s()));
}

// Registers the wait, so that lose() and tick() can end it.
bool GlooPeer::enter(Wait& current, gt::UnboundBuffer* buffer, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) return false;
  current = {buffer, deadline};
  return true;
}

template <class Transfer>
bool GlooPeer::leave(Wait& current, const Transfer& transfer) {
  bool whole = false;
  try {
    whole = transfer();
  } catch (const std::exception& failure) {
    lose(failure.what());
  }
  const std::lock_guard lock(mutex_);
  current.buffer = nullptr;
  return whole;
}

// Pair::close() wakes no waiting thread. A wait that times out closes the pair and wakes all of
// them, connect() included.
void GlooPeer::close_connection() {
  try {
    std::byte nothing{};
    context_->createUnboundBuffer(&nothing, sizeof nothing)->waitRecv(nullptr, kAtOnce);
  } catch (const std::exception&) {
    // the intended time-out
  }
}

std::string GlooPeer::loss() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace motley
