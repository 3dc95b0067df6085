#include "comm/tcp/tcp_acceptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kCandidatesMax = 64;
constexpr std::chrono::seconds kStallTimeout{5};
constexpr std::chrono::milliseconds kPause{100};  // after a failed accept

}  // namespace

TcpAcceptor::TcpAcceptor(asio::io_context& io,
                         const TcpGroup& group,
                         Accept accept,
                         Entered entered)
    : group_(group),
      accept_(std::move(accept)),
      entered_(std::move(entered)),
      acceptor_(io),
      pause_(io) {}

Result<std::unique_ptr<TcpAcceptor>> TcpAcceptor::open(asio::io_context& io,
                                                       const TcpGroup& group,
                                                       const asio::ip::tcp::endpoint& address,
                                                       Accept accept,
                                                       Entered entered) {
  std::unique_ptr<TcpAcceptor> acceptor(
      new TcpAcceptor(io, group, std::move(accept), std::move(entered)));
  boost::system::error_code failure;
  acceptor->acceptor_.open(address.protocol(), failure);
  if (!failure) acceptor->acceptor_.bind(address, failure);
  if (!failure) acceptor->acceptor_.listen(asio::socket_base::max_listen_connections, failure);
  if (!failure) acceptor->address_ = acceptor->acceptor_.local_endpoint(failure);
  if (!failure) return acceptor;
  return Error{ErrorCode::kPeer,
               fmt::format("cannot listen on the address '{}'", address.address().to_string()),
               failure.message(), "give the machine's own numeric address in the cluster file"};
}

TcpAcceptor::~TcpAcceptor() {
  close();
}

void TcpAcceptor::start() {
  asio::post(acceptor_.get_executor(), [this] { accept_next(); });
}

void TcpAcceptor::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  for (Candidate& candidate : candidates_) candidate.handshake->cancel();
  candidates_.clear();
}

void TcpAcceptor::accept_next() {
  acceptor_.async_accept(
      [this](const boost::system::error_code& failure, asio::ip::tcp::socket socket) {
        if (!acceptor_.is_open()) return;
        if (!failure) {
          receive(std::move(socket));
          return accept_next();
        }
        pause_.expires_after(kPause);
        pause_.async_wait([this](const boost::system::error_code& stopped) {
          if (!stopped && acceptor_.is_open()) accept_next();
        });
      });
}

void TcpAcceptor::receive(asio::ip::tcp::socket socket) {
  boost::system::error_code gone;
  const asio::ip::address from = socket.remote_endpoint(gone).address();
  if (gone) return;
  evict_for(from);
  const auto candidate =
      candidates_.insert(candidates_.end(), Candidate{nullptr, from, SteadyClock::now()});
  candidate->handshake = TcpHandshake::start(
      TcpStream(std::move(socket), group_.new_session(TlsSession::Role::kServer)), group_.self,
      /*initiated=*/false, accept_, [this, candidate](const Result<Hello>& hello) {
        if (!hello.ok()) return reject(candidate, hello.error().cause);
        const auto handshake = std::move(candidate->handshake);
        candidates_.erase(candidate);
        entered_(hello->from, handshake->take_stream());
      });
}

// A machine's ranks connect from one address, all at once while the group forms.
void TcpAcceptor::evict_for(const asio::ip::address& from) {
  const std::size_t from_one_max = static_cast<std::size_t>(std::max(4, group_.self.rank_count));
  const auto is_neighbour = [&](const Candidate& candidate) { return candidate.from == from; };
  const auto from_here = std::ranges::count_if(candidates_, is_neighbour);
  if (static_cast<std::size_t>(from_here) >= from_one_max) {
    reject(std::ranges::find_if(candidates_, is_neighbour),
           "too many connections from its address");
  }
  if (candidates_.size() >= kCandidatesMax) reject(candidates_.begin(), "too many connections");
}

void TcpAcceptor::tick(SteadyClock::time_point now) {
  while (!candidates_.empty() && now - candidates_.front().since > kStallTimeout) {
    reject(candidates_.begin(), "it did not authenticate in time");
  }
}

void TcpAcceptor::reject(std::list<Candidate>::iterator candidate, const std::string& why) {
  last_refusal_ = fmt::format("{}: {}", candidate->from.to_string(), why);
  const auto handshake = std::move(candidate->handshake);
  candidates_.erase(candidate);
  handshake->cancel();
}

}  // namespace motley
