#include "comm/transport/inproc_transport.h"

// Ranks of one process. Nothing is buffered: a send completes when its receive has taken it. This
// is the strictest behaviour that the contract allows, so code that relies on buffering fails here
// first. The threads that call send() and recv() do the copying; there is no transport thread.
#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "comm/transport/comm_errors.h"
#include "comm/transport/transport.h"

namespace motley {
namespace {

struct Operation {
  Buffer buffer;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
};

// One direction and tag; at most one of the two queues is not empty.
struct Channel {
  std::deque<Operation> sends;
  std::deque<Operation> receives;
};

void transfer(Rank from, Operation send, Operation receive) {
  const auto source = send.buffer.message();
  const auto target = receive.buffer.message_space();
  if (source.size() <= target.size()) {
    std::memcpy(target.data(), source.data(), source.size());
  }
  receive.completion->finish(received(from, std::move(receive.buffer), source.size()));
  send.completion->finish(std::move(send.buffer));
}

// The state shared by all ranks.
class Hub {
 public:
  explicit Hub(int rank_count) : gone_(static_cast<std::size_t>(rank_count), false) {}

  [[nodiscard]] int rank_count() const { return static_cast<int>(gone_.size()); }

  Pending send(Rank from, Rank to, Tag tag, Buffer buffer) {
    return start(from, to, tag, std::move(buffer), /*is_send=*/true);
  }

  Pending recv(Rank from, Rank to, Tag tag, Buffer buffer) {
    return start(from, to, tag, std::move(buffer), /*is_send=*/false);
  }

  // Ends every current and future operation from and to `rank`.
  void leave(Rank rank) {
    std::deque<std::pair<Rank, Operation>> dropped;  // with the peer that the operation names
    {
      const std::lock_guard lock(mutex_);
      gone_[rank.index()] = true;
      for (auto entry = channels_.begin(); entry != channels_.end();) {
        const auto& [from, to, tag] = entry->first;
        if (from != rank && to != rank) {
          ++entry;
          continue;
        }
        for (auto& send : entry->second.sends) dropped.emplace_back(to, std::move(send));
        for (auto& receive : entry->second.receives) dropped.emplace_back(from, std::move(receive));
        entry = channels_.erase(entry);
      }
    }
    for (auto& [peer, operation] : dropped) {
      operation.completion->finish(peer == rank ? peer_lost(peer, kLeft)
                                                : peer_lost(peer, "this rank disconnected"));
    }
  }

 private:
  static constexpr const char* kLeft = "it disconnected";

  Pending start(Rank from, Rank to, Tag tag, Buffer buffer, bool is_send) {
    MOTLEY_CHECK(from != to && from.value >= 0 && to.value >= 0 && from.value < rank_count() &&
                     to.value < rank_count() && tag < kTagsEnd,
                 "from {} to {}, tag {:#x}", from.value, to.value, tag);
    Operation mine{std::move(buffer)};
    Pending pending(mine.completion);
    Operation other;
    {
      const std::lock_guard lock(mutex_);
      const Rank peer = is_send ? to : from;
      if (gone_[peer.index()]) {
        mine.completion->finish(peer_lost(peer, kLeft));
        return pending;
      }
      Channel& channel = channels_[{from, to, tag}];
      auto& waiting = is_send ? channel.receives : channel.sends;
      if (waiting.empty()) {
        (is_send ? channel.sends : channel.receives).push_back(std::move(mine));
        return pending;
      }
      other = std::move(waiting.front());
      waiting.pop_front();
      if (waiting.empty()) channels_.erase({from, to, tag});
    }
    if (is_send) {
      transfer(from, std::move(mine), std::move(other));
    } else {
      transfer(from, std::move(other), std::move(mine));
    }
    return pending;
  }

  std::mutex mutex_;
  std::vector<bool> gone_;                                   // [Rank]; guarded by mutex_
  std::map<std::tuple<Rank, Rank, Tag>, Channel> channels_;  // from, to, tag; guarded by mutex_
};

class InprocTransport : public Transport {
 public:
  InprocTransport(std::shared_ptr<Hub> hub, Rank self) : hub_(std::move(hub)), self_(self) {}

  ~InprocTransport() override { hub_->leave(self_); }

  InprocTransport(const InprocTransport&) = delete;
  InprocTransport& operator=(const InprocTransport&) = delete;

  std::string address() const override { return fmt::format("inproc:{}", self_.value); }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline) override {
    MOTLEY_CHECK(static_cast<int>(addresses.size()) == hub_->rank_count(), "{} addresses for {}",
                 addresses.size(), hub_->rank_count());
    return {};
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    return hub_->send(self_, to, tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return hub_->recv(from, self_, tag, std::move(buffer));
  }

  bool shares_memory(Rank /*peer*/) const override { return true; }

 private:
  std::shared_ptr<Hub> hub_;  // outlives the last transport
  Rank self_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_inproc_transports(int rank_count) {
  auto hub = std::make_shared<Hub>(rank_count);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < rank_count; ++rank) {
    transports.push_back(std::make_unique<InprocTransport>(hub, Rank{rank}));
  }
  return transports;
}

}  // namespace motley
