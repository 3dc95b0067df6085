// Gloo moves messages whose length both sides know, ends the process when one is longer than its
// receive, and can only be waited for by a blocked thread. So each pair of ranks is used as one
// ordered stream: a fixed header (tag, length), then the message, and the matching of tags is done
// here. A pair has three threads, asleep while nothing moves:
//   reader   takes headers, finds or makes the place for each message, receives it there
//   writer   sends what is queued, in order
//   watcher  connects, then waits on a receive that nobody sends to. Gloo tells a lost connection
//            only to operations that did not begin yet; the watcher's is one, and wakes the others.
// Each pair has a context of its own, because one wait that times out closes all pairs of a
// context.
#include "comm/gloo_transport.h"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "base/check.h"
#include "base/hex.h"
#include "comm/comm_errors.h"

namespace motley {
namespace {

namespace gt = gloo::transport;

using std::chrono::milliseconds;

constexpr std::string_view kAddressPrefix = "gloo:";
constexpr Tag kHelloTag = kTagsEnd;                     // beyond the callers' tags
constexpr std::uint64_t kEarlyBytesMax = 256ULL << 20;  // of messages nobody asked for yet
constexpr milliseconds kForever = std::chrono::hours(24 * 365);
constexpr milliseconds kAtOnce{1};

enum Slot : std::uint64_t { kHeaderSlot, kMessageSlot, kWatchSlot };

// Before each message. Native byte order: Gloo itself joins only machines of one kind.
struct MessageHeader {
  std::uint64_t tag;
  std::uint64_t bytes;  // of the message; the sender's rank in a hello
};

struct Operation {
  Buffer buffer;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
};

// Gloo writes to sockets without asking to be spared the signal.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// Copies `message` into the buffer of a receive and ends it.
void deliver(Rank from, Operation receive, std::span<const std::byte> message) {
  const auto room = receive.buffer.message_room();
  if (message.size() <= room.size()) std::memcpy(room.data(), message.data(), message.size());
  receive.completion->finish(received(from, std::move(receive.buffer), message.size()));
}

class GlooPeer {
 public:
  // Listens at once. May throw what Gloo throws.
  GlooPeer(const std::shared_ptr<gt::Device>& device,
           Rank self,
           Rank rank,
           int rank_count,
           double timeout_s)
      : self_(self),
        rank_(rank),
        timeout_(static_cast<std::int64_t>(timeout_s * 1000)),
        context_(device->createContext(self.value, rank_count)) {
    context_->setTimeout(std::chrono::hours(1));  // connect() is ended by wait_connected() instead
    pair_ = context_->createPair(rank.value).get();
  }

  ~GlooPeer() {
    lose("this rank left");
    for (std::thread* thread : {&watcher_, &reader_, &writer_}) {
      if (thread->joinable()) thread->join();
    }
  }

  GlooPeer(const GlooPeer&) = delete;
  GlooPeer& operator=(const GlooPeer&) = delete;

  [[nodiscard]] std::vector<char> address() const { return pair_->address().bytes(); }

  void start_connecting(std::vector<char> peer_address) {
    watcher_ = std::thread([this, address = std::move(peer_address)] { watch(address); });
  }

  Result<void> wait_connected(Deadline deadline) {
    {
      std::unique_lock lock(mutex_);
      const bool decided =
          changed_.wait_until(lock, deadline.time(), [&] { return connected_ || !lost_.empty(); });
      if (connected_ && lost_.empty()) return {};
      if (decided) return peer_unreachable(rank_, lost_);
    }
    lose("it did not connect in time");
    return peer_unreachable(rank_, "nothing came within the time given");
  }

  Pending send(Tag tag, Buffer buffer) {
    Operation operation{std::move(buffer)};
    Pending pending(operation.completion);
    const std::lock_guard lock(mutex_);
    if (lost_.empty()) {
      sends_.emplace_back(tag, std::move(operation));
      changed_.notify_all();
    } else {
      operation.completion->finish(peer_lost(rank_, lost_));
    }
    return pending;
  }

  Pending recv(Tag tag, Buffer buffer) {
    Operation operation{std::move(buffer)};
    Pending pending(operation.completion);
    std::unique_lock lock(mutex_);
    if (auto early = take(early_, tag)) {
      early_bytes_ -= early->message().size();
      changed_.notify_all();
      lock.unlock();
      deliver(rank_, std::move(operation), early->message());
    } else if (lost_.empty()) {
      receives_[tag].push_back(std::move(operation));
      changed_.notify_all();
    } else {
      operation.completion->finish(peer_lost(rank_, lost_));
    }
    return pending;
  }

  // Ends everything with this peer. The first cause stays.
  void lose(const std::string& cause) {
    {
      const std::lock_guard lock(mutex_);
      if (!lost_.empty()) return;
      lost_ = cause;
    }
    close_connection();
    std::deque<Operation> dropped;
    {
      const std::lock_guard lock(mutex_);
      if (reading_ != nullptr) reading_->abortWaitRecv();
      if (writing_ != nullptr) writing_->abortWaitSend();
      for (auto& [tag, operation] : sends_) dropped.push_back(std::move(operation));
      for (auto& [tag, operations] : receives_) {
        for (auto& operation : operations) dropped.push_back(std::move(operation));
      }
      sends_.clear();
      receives_.clear();
      changed_.notify_all();
    }
    for (auto& operation : dropped) operation.completion->finish(peer_lost(rank_, cause));
  }

 private:
  template <class T>
  static std::optional<T> take(std::map<Tag, std::deque<T>>& waiting, Tag tag) {
    const auto entry = waiting.find(tag);
    if (entry == waiting.end()) return std::nullopt;
    std::optional<T> first(std::move(entry->second.front()));
    entry->second.pop_front();
    if (entry->second.empty()) waiting.erase(entry);
    return first;
  }

  // --- the three threads ---

  void watch(const std::vector<char>& peer_address) {
    block_sigpipe();
    try {
      pair_->connect(peer_address);
      std::byte nothing{};
      const auto watched = context_->createUnboundBuffer(&nothing, sizeof nothing);
      watched->recv(rank_.value, kWatchSlot);
      reader_ = std::thread([this] { read(); });
      writer_ = std::thread([this] { write(); });
      watched->waitRecv(nullptr, kForever);
      lose("it sent what is never sent");
    } catch (const std::exception& failure) {
      lose(failure.what());
    }
  }

  void read() {
    block_sigpipe();
    MessageHeader header{};
    if (!receive(&header, sizeof header, kHeaderSlot, kForever)) return;
    if (header.tag != kHelloTag || header.bytes != static_cast<std::uint64_t>(rank_.value)) {
      lose("another process answered at its address");
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      connected_ = true;
      changed_.notify_all();
    }
    while (receive(&header, sizeof header, kHeaderSlot, kForever) && read_message(header)) {
    }
  }

  bool read_message(const MessageHeader& header) {
    if (header.tag >= kTagsEnd || header.bytes < kFrameHeaderBytes) {
      lose("it sent a message that makes no sense");
      return false;
    }
    auto place = place_for(header);
    if (!place) return false;
    const auto room = place->buffer.message_room();
    const bool came = receive(room.data(), header.bytes, kMessageSlot, timeout_);
    if (place->asked_for) {
      place->completion->finish(came ? received(rank_, std::move(place->buffer), header.bytes)
                                     : Result<Buffer>(peer_lost(rank_, loss())));
    } else if (came) {
      place->buffer.set_payload_bytes(header.bytes - kFrameHeaderBytes);
      keep(header.tag, std::move(place->buffer));
    }
    return came;
  }

  struct Place {
    Buffer buffer;
    std::shared_ptr<Completion> completion;
    bool asked_for = false;
  };

  // Where the message goes: into the receive posted for it, or into a new buffer. Waits while early
  // messages fill their share of memory, until the caller asks for this one or for one of those.
  std::optional<Place> place_for(const MessageHeader& header) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!lost_.empty()) return std::nullopt;
      const auto posted = receives_.find(header.tag);
      const bool fits = posted != receives_.end() &&
                        header.bytes <= posted->second.front().buffer.message_room().size();
      if (fits) {
        auto receive = take(receives_, header.tag);
        return Place{std::move(receive->buffer), std::move(receive->completion), true};
      }
      if (header.bytes <= kEarlyBytesMax - early_bytes_) {
        early_bytes_ += header.bytes;
        return Place{Buffer(header.bytes - kFrameHeaderBytes), nullptr, false};
      }
      if (posted != receives_.end()) {
        lock.unlock();
        lose("it sent a message that is longer than any that is expected");
        return std::nullopt;
      }
      changed_.wait(lock);
    }
  }

  // A whole message that had no place when it began. Its receive may have come since, or may be too
  // small for it, which delivering reports.
  void keep(Tag tag, Buffer message) {
    std::unique_lock lock(mutex_);
    auto receive = take(receives_, tag);
    if (!receive) {
      early_[tag].push_back(std::move(message));
      return;
    }
    early_bytes_ -= message.message().size();
    lock.unlock();
    deliver(rank_, std::move(*receive), message.message());
  }

  void write() {
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

  std::optional<std::pair<Tag, Operation>> next_send() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !sends_.empty() || !lost_.empty(); });
    if (!lost_.empty()) return std::nullopt;
    std::optional next(std::move(sends_.front()));
    sends_.pop_front();
    return next;
  }

  // --- Gloo, whose exceptions end here ---

  // Both return false when the peer is lost, with the reason in loss().
  bool receive(void* bytes, std::size_t count, Slot slot, milliseconds timeout) {
    const auto buffer = context_->createUnboundBuffer(bytes, count);
    return enter(reading_, buffer.get()) && leave(reading_, [&] {
             buffer->recv(rank_.value, slot);
             return buffer->waitRecv(nullptr, timeout);
           });
  }

  bool send_whole(void* bytes, std::size_t count, Slot slot) {
    const auto buffer = context_->createUnboundBuffer(bytes, count);
    return enter(writing_, buffer.get()) && leave(writing_, [&] {
             buffer->send(rank_.value, slot);
             return buffer->waitSend(nullptr, timeout_);
           });
  }

  // Makes the wait visible to lose(), which ends it.
  bool enter(gt::UnboundBuffer*& current, gt::UnboundBuffer* buffer) {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return false;
    current = buffer;
    return true;
  }

  template <class Transfer>
  bool leave(gt::UnboundBuffer*& current, const Transfer& transfer) {
    bool whole = false;
    try {
      whole = transfer();
    } catch (const std::exception& failure) {
      lose(failure.what());
    }
    const std::lock_guard lock(mutex_);
    current = nullptr;
    return whole;
  }

  // Pair::close() wakes nobody. A wait that times out closes the pair and does, connect() included.
  void close_connection() {
    try {
      std::byte nothing{};
      context_->createUnboundBuffer(&nothing, sizeof nothing)->waitRecv(nullptr, kAtOnce);
    } catch (const std::exception&) {
      // The time-out, as intended.
    }
  }

  [[nodiscard]] std::string loss() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  const Rank self_;
  const Rank rank_;
  const milliseconds timeout_;
  const std::shared_ptr<gt::Context> context_;
  gt::Pair* pair_;  // owned by the context

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool connected_ = false;
  std::string lost_;  // why; empty while the peer is there
  std::deque<std::pair<Tag, Operation>> sends_;
  std::map<Tag, std::deque<Operation>> receives_;
  std::map<Tag, std::deque<Buffer>> early_;  // came before their receive
  std::uint64_t early_bytes_ = 0;
  gt::UnboundBuffer* reading_ = nullptr;  // what the reader waits on
  gt::UnboundBuffer* writing_ = nullptr;  // what the writer waits on

  // The watcher starts the other two, so it is joined first.
  std::thread watcher_;
  std::thread reader_;
  std::thread writer_;
};

class GlooTransport : public WatchableTransport {
 public:
  // May throw what Gloo throws.
  GlooTransport(const TransportOptions& options, std::shared_ptr<gt::Device> device)
      : self_(options.rank), device_(std::move(device)) {
    for (Rank rank{0}; rank.value < options.rank_count; ++rank.value) {
      peers_.push_back(rank == self_
                           ? nullptr
                           : std::make_unique<GlooPeer>(device_, self_, rank, options.rank_count,
                                                        options.timeout_s));
    }
  }

  // Each pair of ranks has its own address: the text holds one entry a rank, the own one empty.
  std::string address() const override {
    std::string text(kAddressPrefix);
    for (const auto& peer : peers_) {
      text += (peer == nullptr ? "" : to_hex(peer->address())) + "/";
    }
    return text;
  }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    MOTLEY_CHECK(addresses.size() == peers_.size(), "{} addresses for {} ranks", addresses.size(),
                 peers_.size());
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      if (peers_[rank] == nullptr) continue;
      auto address = entry_for_self(addresses[rank]);
      if (!address || address->size() != peers_[rank]->address().size()) {
        return peer_unreachable(Rank{static_cast<std::int32_t>(rank)},
                                "its address is not one of Gloo");
      }
      peers_[rank]->start_connecting(std::move(*address));
    }
    for (const auto& peer : peers_) {
      if (peer != nullptr) MOTLEY_TRY(peer->wait_connected(deadline));
    }
    return {};
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    return peer(to, tag).send(tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return peer(from, tag).recv(tag, std::move(buffer));
  }

  void lose(Rank rank, const std::string& cause) override { peers_[rank.index()]->lose(cause); }

 private:
  [[nodiscard]] std::optional<std::vector<char>> entry_for_self(std::string_view text) const {
    if (!text.starts_with(kAddressPrefix)) return std::nullopt;
    text.remove_prefix(kAddressPrefix.size());
    for (int skipped = 0; skipped < self_.value; ++skipped) {
      const auto slash = text.find('/');
      if (slash == std::string_view::npos) return std::nullopt;
      text.remove_prefix(slash + 1);
    }
    return from_hex(text.substr(0, text.find('/')));
  }

  GlooPeer& peer(Rank rank, Tag tag) {
    MOTLEY_CHECK(rank != self_ && rank.value >= 0 && rank.index() < peers_.size() && tag < kTagsEnd,
                 "rank {}, tag {:#x}", rank.value, tag);
    return *peers_[rank.index()];
  }

  const Rank self_;
  const std::shared_ptr<gt::Device> device_;
  std::vector<std::unique_ptr<GlooPeer>> peers_;  // [Rank]; no entry for this rank
};

// The thread that serves the sockets inherits the blocked signal.
std::shared_ptr<gt::Device> open_device(const gt::tcp::attr& attributes) {
  std::shared_ptr<gt::Device> device;
  std::exception_ptr failure;
  std::thread([&] {
    block_sigpipe();
    try {
      device = gt::tcp::CreateDevice(attributes);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return device;
}

}  // namespace

Result<std::unique_ptr<WatchableTransport>> make_gloo_transport(const TransportOptions& options) {
  gt::tcp::attr attributes;
  if (!options.bind_address.empty()) {
    attributes.hostname = options.bind_address;
  } else if (!options.interface.empty()) {
    attributes.iface = options.interface;
  } else {
    attributes.hostname = "127.0.0.1";  // never empty: Gloo would ask for the host's name
  }
  try {
    return std::unique_ptr<WatchableTransport>(
        std::make_unique<GlooTransport>(options, open_device(attributes)));
  } catch (const std::exception& failure) {
    return Error{
        ErrorCode::kPeer,
        fmt::format("Gloo cannot use the address '{}{}'", attributes.hostname, attributes.iface),
        failure.what(), "give the machine's own numeric address in the cluster file"};
  }
}

}  // namespace motley
