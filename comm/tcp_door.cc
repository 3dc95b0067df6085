#include "comm/tcp_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kGuestsMax = 64;
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kPause{100};  // when the system has no socket to give

}  // namespace

TcpDoor::TcpDoor(asio::io_context& io, const TcpGroup& group, Accept accept, Entered entered)
    : group_(group),
      accept_(std::move(accept)),
      entered_(std::move(entered)),
      acceptor_(io),
      pause_(io) {}

Result<std::unique_ptr<TcpDoor>> TcpDoor::open(asio::io_context& io,
                                               const TcpGroup& group,
                                               const asio::ip::tcp::endpoint& address,
                                               Accept accept,
                                               Entered entered) {
  std::unique_ptr<TcpDoor> door(new TcpDoor(io, group, std::move(accept), std::move(entered)));
  boost::system::error_code failure;
  door->acceptor_.open(address.protocol(), failure);
  if (!failure) door->acceptor_.bind(address, failure);
  if (!failure) door->acceptor_.listen(asio::socket_base::max_listen_connections, failure);
  if (!failure) door->address_ = door->acceptor_.local_endpoint(failure);
  if (!failure) return door;
  return Error{ErrorCode::kPeer,
               fmt::format("cannot listen on the address '{}'", address.address().to_string()),
               failure.message(), "give the machine's own numeric address in the cluster file"};
}

TcpDoor::~TcpDoor() {
  close();
}

void TcpDoor::start() {
  asio::post(acceptor_.get_executor(), [this] { accept_next(); });
}

void TcpDoor::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  for (Guest& guest : guests_) guest.introduction->cancel();
  guests_.clear();
}

void TcpDoor::accept_next() {
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

void TcpDoor::receive(asio::ip::tcp::socket socket) {
  boost::system::error_code gone;
  const asio::ip::address from = socket.remote_endpoint(gone).address();
  if (gone) return;
  make_room_for(from);
  const auto guest = guests_.insert(guests_.end(), Guest{nullptr, from, SteadyClock::now()});
  guest->introduction = Introduction::start(
      TcpStream(std::move(socket), group_.new_session(TlsSession::Role::kServer)), group_.self,
      /*dialled=*/false, accept_, [this, guest](const Result<Hello>& hello) {
        if (!hello.ok()) return send_away(guest, hello.error().cause);
        const auto introduction = std::move(guest->introduction);
        guests_.erase(guest);
        entered_(hello->from, introduction->take_stream());
      });
}

// The ranks of one machine come from one address, all at once when the group meets.
void TcpDoor::make_room_for(const asio::ip::address& from) {
  const std::size_t from_one_max = static_cast<std::size_t>(std::max(4, group_.self.rank_count));
  const auto is_neighbour = [&](const Guest& guest) { return guest.from == from; };
  const auto from_here = std::ranges::count_if(guests_, is_neighbour);
  if (static_cast<std::size_t>(from_here) >= from_one_max) {
    send_away(std::ranges::find_if(guests_, is_neighbour), "too many came from its address");
  }
  if (guests_.size() >= kGuestsMax) send_away(guests_.begin(), "too many came");
}

void TcpDoor::tick(SteadyClock::time_point now) {
  while (!guests_.empty() && now - guests_.front().since > kPatience) {
    send_away(guests_.begin(), "it did not show who it is in time");
  }
}

void TcpDoor::send_away(std::list<Guest>::iterator guest, const std::string& why) {
  last_refusal_ = fmt::format("{}: {}", guest->from.to_string(), why);
  const auto introduction = std::move(guest->introduction);
  guests_.erase(guest);
  introduction->cancel();
}

}  // namespace motley
