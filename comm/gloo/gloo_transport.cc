#include "comm/gloo/gloo_transport.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "comm/gloo/gloo_peer.h"
#include "comm/transport/comm_errors.h"

namespace motley {
namespace {

namespace gt = gloo::transport;

constexpr std::string_view kGlooPrefix = "gloo:";

class GlooTransport : public WatchableTransport {
 public:
  // May throw Gloo's exceptions.
  GlooTransport(const TransportOptions& options, std::shared_ptr<gt::Device> device)
      : self_(options.rank), device_(std::move(device)) {
    for (Rank rank{0}; rank.value < options.rank_count; ++rank.value) {
      peers_.push_back(rank == self_ ? nullptr
                                     : std::make_unique<GlooPeer>(
                                           device_, self_, rank, options.rank_count,
                                           options.stall_timeout, options.unexpected_bytes_max));
    }
    ticks_ = std::jthread([this](const std::stop_token& stop) { tick_until(stop); });
  }

  // Each pair of ranks has its own address: the text has one entry per rank, empty for this rank.
  std::string address() const override {
    std::string text(kGlooPrefix);
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
  void tick_until(const std::stop_token& stop) {
    block_sigpipe();  // closing a pair may write
    constexpr std::chrono::milliseconds kBetweenTicks{500};
    std::unique_lock lock(tick_mutex_);
    while (!tick_wake_.wait_for(lock, stop, kBetweenTicks, [] { return false; }) &&
           !stop.stop_requested()) {
      for (const auto& peer : peers_) {
        if (peer != nullptr) peer->tick();
      }
    }
  }

  [[nodiscard]] std::optional<std::vector<char>> entry_for_self(std::string_view text) const {
    if (!text.starts_with(kGlooPrefix)) return std::nullopt;
    text.remove_prefix(kGlooPrefix.size());
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
  std::mutex tick_mutex_;
  std::condition_variable_any tick_wake_;
  std::jthread ticks_;  // ends before the peers do
};

// Opens the device in a thread with SIGPIPE blocked; the thread that serves the sockets inherits
// that.
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
