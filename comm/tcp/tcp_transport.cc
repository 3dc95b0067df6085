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
#include <future>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "comm/tcp/connected_ranks.h"
#include "comm/tcp/tcp_acceptor.h"
#include "comm/tcp/tcp_address.h"
#include "comm/tcp/tcp_connector.h"
#include "comm/tcp/tcp_group.h"
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
        on_missing_(std::move(on_missing)),
        connected_(options.rank, options.rank_count) {
    for (Rank rank{0}; rank.value < options.rank_count; ++rank.value) {
      peers_.push_back(rank == self_ ? nullptr
                                     : std::make_unique<TcpPeer>(io_, rank, egress_, options));
    }
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

  bool is_local(Rank peer) const override { return connected_.is_local(peer); }

  bool shares_memory(Rank peer) const override { return connected_.shares_memory(peer); }

 private:
  bool is_tls() const { return group_.tls != nullptr; }

  TcpPeer& peer(Rank rank, Tag tag) {
    MOTLEY_CHECK(rank != self_ && rank.value >= 0 && rank.index() < peers_.size() && tag < kTagsEnd,
                 "rank {}, tag {:#x}", rank.value, tag);
    return *peers_[rank.index()];
  }

  Result<void> wait_for_all(Deadline deadline) {
    bool has_reported = false;
    while (!deadline.passed()) {
      const auto next = SteadyClock::now() + kReportInterval;
      if (connected_.wait_until(std::min(next, deadline.time()))) break;
      has_reported = log_missing(has_reported);
    }
    MOTLEY_TRY(connected_.refusal());
    const auto missing = connected_.first_missing();
    if (!missing) return {};
    return peer_unreachable(*missing, why_missing(*missing));
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
    if (connected_.has(rank)) return;
    const Endpoint source(acceptor_->address().address(), 0);
    connectors_[rank.index()] = std::make_unique<TcpConnector>(
        io_, group_, rank, source, target, pause,
        [this](Rank reached, TcpStream stream) { join(reached, std::move(stream)); },
        [this](Rank refusing, const std::string& cause) { connected_.refuse(refusing, cause); });
    connectors_[rank.index()]->start();
  }

  // Accepts each rank once. Accepting a lower rank ends this rank's own attempts to reach it.
  Result<void> accept(const Hello& hello) {
    const auto refuse = [&](const char* why) {
      return Error{ErrorCode::kPeer, "a hello that cannot be accepted",
                   fmt::format("rank {} {}", hello.from.value, why), ""};
    };
    if (connected_.has(hello.from)) return refuse("is already connected");
    const auto& own = connectors_[hello.from.index()];
    if (hello.from > self_ || own == nullptr) return {};
    if (own->is_in_handshake()) return refuse("is being connected");
    own->stop();
    return {};
  }

  void join(Rank rank, TcpStream stream) {
    if (const auto& own = connectors_[rank.index()]; own != nullptr) own->stop();
    if (connected_.has(rank)) return;  // two connections at the same moment
    const bool is_local = stream.is_local();
    const bool shares_memory = stream.shares_memory();
    if (connected_.lacks_only(rank)) acceptor_->close();
    peers_[rank.index()]->join(std::move(stream));
    connected_.add(rank, is_local, shares_memory);
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
  ConnectedRanks connected_;
  std::thread thread_;
};

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
  MOTLEY_ASSIGN(TcpGroup group, TcpGroup::of(options));
  auto transport = std::make_unique<TcpTransport>(options, std::move(group), std::move(on_missing));
  MOTLEY_TRY(transport->open(Endpoint(address, 0)));
  return std::unique_ptr<LocatingTransport>(std::move(transport));
}

}  // namespace motley
