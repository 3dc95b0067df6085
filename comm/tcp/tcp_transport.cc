// One thread runs the io_context and with it the acceptor, the connectors and all peers; it sleeps
// while idle, except for two ticks a second. The higher rank dials the lower. If that has not
// succeeded after 1.5 s, for example because of a firewall or NAT before the lower rank, a lower
// rank on another machine dials too. Each pair still gets one connection: the higher rank stops its
// own attempts before it accepts the other's, and accepts none while one of its own is in the
// handshake. Once all ranks are connected the acceptor is closed permanently.
#include "comm/tcp/tcp_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "base/secret.h"
#include "comm/tcp/derived_key.h"
#include "comm/tcp/tcp_acceptor.h"
#include "comm/tcp/tcp_address.h"
#include "comm/tcp/tcp_connector.h"
#include "comm/tcp/tcp_peer.h"
#include "comm/transport/comm_errors.h"
#include "comm/transport/missing_peer.h"

namespace motley {
namespace {

namespace asio = boost::asio;
using Endpoint = asio::ip::tcp::endpoint;

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::seconds kOversleptBy{2};
constexpr std::chrono::milliseconds kBetweenAttempts{100};
// Attempts from lower to higher ranks: their start and interval.
constexpr std::chrono::milliseconds kOtherWayAfter{1500};
constexpr std::chrono::milliseconds kBetweenOtherWays{500};
constexpr std::chrono::seconds kReportInterval{1};  // reports of missing peers

class TcpTransport : public LocatingTransport {
 public:
  TcpTransport(const TransportOptions& options, TcpGroup group, OnMissing on_missing)
      : self_(options.rank),
        group_(std::move(group)),
        egress_(options.rank_count, [this] { check_soon(); }),
        turns_timer_(io_),
        other_way_timer_(io_),
        ticker_(io_),
        on_missing_(std::move(on_missing)) {
    for (Rank rank{0}; rank.value < options.rank_count; ++rank.value) {
      peers_.push_back(rank == self_
                           ? nullptr
                           : std::make_unique<TcpPeer>(io_, rank, egress_, options.stall_timeout,
                                                       options.unexpected_bytes_max));
    }
    joined_.resize(peers_.size());
    joined_[self_.index()] = true;
    local_.resize(peers_.size());
    sharing_.resize(peers_.size());
    connectors_.resize(peers_.size());
  }

  // Ends pending operations on this thread, after the I/O thread has ended.
  ~TcpTransport() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    for (const auto& peer : peers_) {
      if (peer != nullptr) peer->leave();
    }
  }

  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  Result<void> open(const Endpoint& address) {
    MOTLEY_ASSIGN(acceptor_,
                  TcpAcceptor::open(
                      io_, group_, address, [this](const Hello& hello) { return accept(hello); },
                      [this](Rank rank, TcpStream stream) { join(rank, std::move(stream)); }));
    acceptor_->start();
    ticked_at_ = SteadyClock::now();
    tick_later();
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  std::string address() const override { return tcp_address_text(acceptor_->address(), is_tls()); }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    MOTLEY_CHECK(addresses.size() == peers_.size(), "{} addresses for {} ranks", addresses.size(),
                 peers_.size());
    std::vector<Endpoint> targets;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const auto target = parse_tcp_address(addresses[rank], is_tls());
      if (!target) {
        return peer_unreachable(
            Rank{static_cast<std::int32_t>(rank)},
            fmt::format("its address is not one of TCP {} TLS", is_tls() ? "with" : "without"));
      }
      targets.push_back(*target);
    }
    asio::post(io_, [this, targets] { connect_to(targets); });
    return wait_for_all(deadline);
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    return peer(to, tag).send(tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    return peer(from, tag).recv(tag, std::move(buffer));
  }

  bool is_local(Rank peer) const override {
    const std::lock_guard lock(mutex_);
    MOTLEY_CHECK(peer.value >= 0 && peer.index() < local_.size(), "rank {}", peer.value);
    return local_[peer.index()];
  }

  bool shares_memory(Rank peer) const override {
    const std::lock_guard lock(mutex_);
    MOTLEY_CHECK(peer.value >= 0 && peer.index() < sharing_.size(), "rank {}", peer.value);
    return sharing_[peer.index()];
  }

 private:
  bool is_tls() const { return group_.tls != nullptr; }

  TcpPeer& peer(Rank rank, Tag tag) {
    MOTLEY_CHECK(rank != self_ && rank.value >= 0 && rank.index() < peers_.size() && tag < kTagsEnd,
                 "rank {}, tag {:#x}", rank.value, tag);
    return *peers_[rank.index()];
  }

  Result<void> wait_for_all(Deadline deadline) {
    const auto missing = [this] { return std::ranges::find(joined_, false); };
    std::unique_lock lock(mutex_);
    const auto decided = [&] { return refusal_ || missing() == joined_.end(); };
    bool has_reported = false;
    while (!decided() && !deadline.passed()) {
      const auto next = SteadyClock::now() + kReportInterval;
      if (changed_.wait_until(lock, std::min(next, deadline.time()), decided)) break;
      lock.unlock();
      has_reported = log_missing(has_reported);
      lock.lock();
    }
    if (decided()) return refusal_ ? Result<void>(*refusal_) : Result<void>();
    const Rank rank{static_cast<std::int32_t>(missing() - joined_.begin())};
    lock.unlock();
    return peer_unreachable(rank, why_missing(rank));
  }

  // The I/O thread's reason.
  std::string why_missing(Rank rank) {
    std::promise<std::string> answer;
    asio::post(io_, [&] {
      std::string why = "timed out";
      const auto& connector = connectors_[rank.index()];
      if (connector != nullptr && !connector->last_failure().empty()) {
        why = connector->last_failure();
      }
      if (rank > self_ && !acceptor_->last_refusal().empty()) {
        why += fmt::format("; the last incoming connection was refused, {}",
                           acceptor_->last_refusal());
      }
      answer.set_value(why);
    });
    return answer.get_future().get();
  }

  // Returns whether there was something to report.
  bool log_missing(bool has_reported) {
    if (!on_missing_) return false;
    std::promise<std::vector<MissingPeer>> answer;
    asio::post(io_, [&] {
      std::vector<MissingPeer> all;
      for (const auto& connector : connectors_) {
        if (connector == nullptr) continue;
        if (auto peer = connector->missing(SteadyClock::now())) all.push_back(*std::move(peer));
      }
      answer.set_value(std::move(all));
    });
    const std::vector<MissingPeer> all = answer.get_future().get();
    if (!all.empty() || has_reported) on_missing_(all);
    return !all.empty();
  }

  // --- on the I/O thread ---

  void connect_to(const std::vector<Endpoint>& targets) {
    for (Rank rank{0}; rank < self_; ++rank.value) {
      start_connector(rank, targets[rank.index()], kBetweenAttempts);
    }
    other_way_timer_.expires_after(kOtherWayAfter);
    other_way_timer_.async_wait([this, targets](const boost::system::error_code& stopped) {
      if (stopped) return;
      const auto here = acceptor_->address().address();
      for (std::size_t rank = self_.index() + 1; rank < targets.size(); ++rank) {
        // On one machine both directions use the same route.
        if (targets[rank].address() == here) continue;
        start_connector(Rank{static_cast<std::int32_t>(rank)}, targets[rank], kBetweenOtherWays);
      }
    });
  }

  void start_connector(Rank rank, const Endpoint& target, std::chrono::milliseconds pause) {
    if (is_joined(rank)) return;
    const Endpoint source(acceptor_->address().address(), 0);
    connectors_[rank.index()] = std::make_unique<TcpConnector>(
        io_, group_, rank, source, target, pause,
        [this](Rank reached, TcpStream stream) { join(reached, std::move(stream)); },
        [this](Rank refusing, const std::string& cause) { give_up(refusing, cause); });
    connectors_[rank.index()]->start();
  }

  bool is_joined(Rank rank) const {
    const std::lock_guard lock(mutex_);
    return joined_[rank.index()];
  }

  void give_up(Rank refusing, const std::string& cause) {
    {
      const std::lock_guard lock(mutex_);
      refusal_ = peer_refused(refusing, cause);
    }
    changed_.notify_all();
  }

  // Accepts each rank once. Accepting a lower rank ends this rank's own attempts to reach it.
  Result<void> accept(const Hello& hello) {
    const auto refuse = [&](const char* why) {
      return Error{ErrorCode::kPeer, "a hello that cannot be accepted",
                   fmt::format("rank {} {}", hello.from.value, why), ""};
    };
    if (is_joined(hello.from)) return refuse("is already connected");
    const auto& own = connectors_[hello.from.index()];
    if (hello.from > self_ || own == nullptr) return {};
    if (own->is_in_handshake()) return refuse("is being connected");
    own->stop();
    return {};
  }

  void join(Rank rank, TcpStream stream) {
    bool all_came = false;
    if (const auto& own = connectors_[rank.index()]; own != nullptr) own->stop();
    {
      const std::lock_guard lock(mutex_);
      if (joined_[rank.index()]) return;  // two connections at the same moment
      joined_[rank.index()] = true;
      local_[rank.index()] = stream.is_local();
      sharing_[rank.index()] = stream.shares_memory();
      all_came = std::ranges::find(joined_, false) == joined_.end();
    }
    if (all_came) acceptor_->close();
    peers_[rank.index()]->join(std::move(stream));
    changed_.notify_all();
  }

  // May be called from any thread.
  void check_soon() {
    asio::post(io_, [this] { look_at_turns(); });
  }

  void look_at_turns() {
    std::vector<EgressScheduler::Sent> sent;
    for (const auto& each : peers_) {
      sent.push_back(each == nullptr ? EgressScheduler::Sent{} : each->sent());
    }
    const auto seen = egress_.poll(SteadyClock::now(), sent);
    for (const Rank rank : seen.released) peers_[rank.index()]->proceed();
    if (!seen.is_due_again) return;
    turns_timer_.expires_after(EgressScheduler::kBetweenChecks);  // replaces an earlier wait
    turns_timer_.async_wait([this](const boost::system::error_code& ended) {
      if (!ended) look_at_turns();
    });
  }

  void tick_later() {
    ticker_.expires_after(kTick);
    ticker_.async_wait([this](const boost::system::error_code&) {
      const auto now = SteadyClock::now();
      const bool overslept = now - ticked_at_ > kTick + kOversleptBy;
      ticked_at_ = now;
      acceptor_->tick(now);
      for (const auto& each : peers_) {
        if (each != nullptr) each->tick(now, overslept);
      }
      look_at_turns();
      tick_later();
    });
  }

  const Rank self_;
  const TcpGroup group_;
  asio::io_context io_{1};
  EgressScheduler egress_;
  asio::steady_timer turns_timer_;
  std::vector<std::unique_ptr<TcpPeer>> peers_;            // [Rank]; no entry for this rank
  std::vector<std::unique_ptr<TcpConnector>> connectors_;  // [Rank]; null where none was started
  std::unique_ptr<TcpAcceptor> acceptor_;
  asio::steady_timer other_way_timer_;
  asio::steady_timer ticker_;
  const OnMissing on_missing_;
  SteadyClock::time_point ticked_at_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<bool> joined_;   // [Rank]
  std::vector<bool> local_;    // [Rank]; false until connected
  std::vector<bool> sharing_;  // [Rank]; likewise
  std::optional<Error> refusal_;

  std::thread thread_;
};

Result<TcpGroup> make_group(const TransportOptions& options) {
  TcpGroup group;
  group.self = {options.epoch, options.rank_count, options.rank, Rank{}, options.local_shortcut};
  if (options.secret.empty()) return group;
  MOTLEY_CHECK(options.secret.size() == kSecretBytes, "a secret of {} bytes",
               options.secret.size());
  const std::string purpose = fmt::format("motley data, epoch {}", options.epoch);
  MOTLEY_ASSIGN(std::string key, derive_key(options.secret, purpose));
  MOTLEY_ASSIGN(group.tls, TlsContext::make(std::move(key), purpose));
  return group;
}

}  // namespace

Result<std::unique_ptr<LocatingTransport>> make_tcp_transport(const TransportOptions& options,
                                                              OnMissing on_missing) {
  const std::string host = options.bind_address.empty() ? "127.0.0.1" : options.bind_address;
  boost::system::error_code failure;
  const auto address = asio::ip::make_address(host, failure);
  if (failure) {
    return Error{ErrorCode::kPeer, fmt::format("'{}' is not a numeric address", excerpt(host)),
                 failure.message(), "give the machine's own numeric address in the cluster file"};
  }
  MOTLEY_ASSIGN(TcpGroup group, make_group(options));
  auto transport = std::make_unique<TcpTransport>(options, std::move(group), std::move(on_missing));
  MOTLEY_TRY(transport->open(Endpoint(address, 0)));
  return std::unique_ptr<LocatingTransport>(std::move(transport));
}

}  // namespace motley
