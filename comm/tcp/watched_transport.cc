// A thread waits on receives that are never sent to: they end when the peer is lost.
#include "comm/tcp/watched_transport.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>
#include <utility>

namespace motley {
namespace {

constexpr char kSeparator = '+';  // between the two addresses
constexpr Tag kNeverSent = 0;
constexpr double kBetweenLooks_s = 3600;  // a notification ends the wait
// Usually the transport itself detects a peer that was killed or left, after delivering its last
// messages.
constexpr double kGrace_s = 0.2;

class WatchedTransport : public Transport {
 public:
  WatchedTransport(std::unique_ptr<WatchableTransport> watched,
                   std::unique_ptr<Transport> beside,
                   Rank self)
      : self_(self), beside_(std::move(beside)), watched_(std::move(watched)) {}

  ~WatchedTransport() override {
    stopping_ = true;
    heard_->notify();
    stopped_.notify();
    if (watcher_.joinable()) watcher_.join();
    watched_.reset();  // before beside_, so that peers still receive its last messages
  }

  WatchedTransport(const WatchedTransport&) = delete;
  WatchedTransport& operator=(const WatchedTransport&) = delete;

  std::string address() const override {
    return fmt::format("{}{}{}", watched_->address(), kSeparator, beside_->address());
  }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    std::vector<std::string> of_watched;
    std::vector<std::string> of_beside;
    for (const std::string& text : addresses) {
      const auto end = text.rfind(kSeparator);
      of_watched.push_back(text.substr(0, end));
      of_beside.push_back(end == std::string::npos ? "" : text.substr(end + 1));
    }
    MOTLEY_TRY(watched_->connect(of_watched, deadline));
    MOTLEY_TRY(beside_->connect(of_beside, deadline));
    losses_.resize(addresses.size());
    for (Rank peer{0}; peer.index() < losses_.size(); ++peer.value) {
      if (peer == self_) continue;
      losses_[peer.index()] = beside_->recv(peer, kNeverSent, Buffer(0));
      losses_[peer.index()].notify_when_done(heard_);
    }
    watcher_ = std::thread([this] { watch(); });
    return {};
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    return watched_->send(to, tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return watched_->recv(from, tag, std::move(buffer));
  }

 private:
  void watch() {
    while (!stopping_) {
      if (!heard_->wait(Deadline::after_s(kBetweenLooks_s))) continue;
      (void)stopped_.wait(Deadline::after_s(kGrace_s));
      if (stopping_) return;
      for (Rank peer{0}; peer.index() < losses_.size(); ++peer.value) {
        Pending& loss = losses_[peer.index()];
        if (!loss.valid() || !loss.done()) continue;
        const auto outcome = loss.wait(Deadline::after_s(0), "its loss");
        watched_->lose(peer,
                       outcome.ok() ? "it sent an unexpected message" : outcome.error().cause);
      }
    }
  }

  const Rank self_;
  const std::unique_ptr<Transport> beside_;
  std::unique_ptr<WatchableTransport> watched_;
  std::vector<Pending> losses_;  // [Rank]; used by the watcher once it runs
  const std::shared_ptr<Notifier> heard_ = std::make_shared<Notifier>();
  Notifier stopped_;
  std::atomic<bool> stopping_ = false;
  std::thread watcher_;
};

}  // namespace

std::unique_ptr<Transport> make_watched_transport(std::unique_ptr<WatchableTransport> watched,
                                                  std::unique_ptr<Transport> beside,
                                                  Rank self) {
  return std::make_unique<WatchedTransport>(std::move(watched), std::move(beside), self);
}

}  // namespace motley
