#include "comm/transport/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "comm/transport/comm_errors.h"
#include "comm/transport/take_first.h"

namespace motley {
namespace {

constexpr std::size_t kDroppedAtOnce = std::size_t{64} << 10;

}  // namespace

Mailbox::Posted Mailbox::recv(Tag tag, Buffer buffer) {
  Receive receive{std::move(buffer), std::make_shared<Completion>()};
  Posted posted{Pending(receive.completion)};
  std::unique_lock lock(mutex_);
  if (auto early = take_first(early_, tag)) {
    unexpected_quota_.give(early->message().size());
    posted.wakes_reader = std::exchange(reader_waits_, false);
    lock.unlock();
    deliver_unexpected(std::move(receive), std::move(*early));
  } else if (lost_.empty()) {
    receives_[tag].push_back(std::move(receive));
    posted.wakes_reader = std::exchange(reader_waits_, false);
  } else {
    receive.completion->finish(peer_lost(from_, lost_));
  }
  return posted;
}

bool Mailbox::begin(Tag tag, std::uint64_t message_bytes) {
  MOTLEY_CHECK(!arrival_ && message_bytes >= kFrameHeaderBytes, "{} bytes", message_bytes);
  std::unique_lock lock(mutex_);
  Arrival arrival{tag, message_bytes};
  if (auto receive = take_first(receives_, tag)) {
    lock.unlock();
    const std::size_t capacity_bytes = receive->buffer.message_space().size();
    arrival.is_kept = message_bytes <= capacity_bytes;
    if (arrival.is_kept) {
      arrival.buffer = std::move(receive->buffer);
      arrival.completion = std::move(receive->completion);
    } else {
      receive->completion->finish(message_too_long(from_, capacity_bytes));
    }
  } else if (unexpected_quota_.take(message_bytes)) {
    lock.unlock();
    arrival.buffer = Buffer(message_bytes - kFrameHeaderBytes);
  } else {
    reader_waits_ = true;
    return false;
  }
  arrival_ = std::move(arrival);
  return true;
}

std::span<std::byte> Mailbox::space() {
  if (!arrival_) return {};
  const std::uint64_t left = arrival_->bytes - arrival_->filled;
  if (arrival_->is_kept) return arrival_->buffer.message_space().subspan(arrival_->filled, left);
  dropped_.resize(kDroppedAtOnce);
  return std::span(dropped_).first(std::min<std::uint64_t>(left, kDroppedAtOnce));
}

void Mailbox::fill(std::size_t count) {
  MOTLEY_CHECK(arrival_ && count <= arrival_->bytes - arrival_->filled, "{} bytes", count);
  arrival_->filled += count;
  if (arrival_->filled == arrival_->bytes) deliver(*std::exchange(arrival_, std::nullopt));
}

void Mailbox::cut() {
  MOTLEY_CHECK(arrival_ && !cut_, "nothing has begun, or something was cut");
  cut_ = std::exchange(arrival_, std::nullopt);
}

std::uint64_t Mailbox::cut_bytes() const {
  return cut_ ? cut_->bytes - cut_->filled : 0;
}

void Mailbox::proceed() {
  MOTLEY_CHECK(cut_ && !arrival_, "nothing was cut, or something has begun");
  arrival_ = std::exchange(cut_, std::nullopt);
}

// The receive of an early message may have been posted while it arrived.
void Mailbox::deliver(Arrival arrival) {
  if (!arrival.is_kept) return;
  if (arrival.completion != nullptr) {
    arrival.completion->finish(received(from_, std::move(arrival.buffer), arrival.bytes));
    return;
  }
  arrival.buffer.set_payload_bytes(arrival.bytes - kFrameHeaderBytes);
  std::unique_lock lock(mutex_);
  auto receive = take_first(receives_, arrival.tag);
  if (!receive) {
    early_[arrival.tag].push_back(std::move(arrival.buffer));
    return;
  }
  unexpected_quota_.give(arrival.bytes);
  lock.unlock();
  deliver_unexpected(std::move(*receive), std::move(arrival.buffer));
}

void Mailbox::deliver_unexpected(Receive receive, Buffer message) const {
  const auto source = message.message();
  const auto space = receive.buffer.message_space();
  if (source.size() <= space.size()) std::memcpy(space.data(), source.data(), source.size());
  receive.completion->finish(received(from_, std::move(receive.buffer), source.size()));
}

void Mailbox::lose(const std::string& cause) {
  std::map<Tag, std::deque<Receive>> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return;
    lost_ = cause;
    dropped.swap(receives_);
  }
  for (auto* begun : {&arrival_, &cut_}) {
    if (*begun && (*begun)->completion != nullptr) {
      (*begun)->completion->finish(peer_lost(from_, cause));
    }
    begun->reset();
  }
  for (auto& [tag, receives] : dropped) {
    for (auto& receive : receives) receive.completion->finish(peer_lost(from_, cause));
  }
}

}  // namespace motley
