#include "comm/tcp/tcp_address.h"

#include <fmt/format.h>

namespace motley {
namespace {

namespace asio = boost::asio;

std::string_view prefix_of(bool is_tls) {
  return is_tls ? "tls:" : "tcp:";
}

}  // namespace

std::string tcp_address_text(const asio::ip::tcp::endpoint& at, bool is_tls) {
  const std::string host = at.address().to_string();
  return fmt::format("{}{}:{}", prefix_of(is_tls),
                     at.address().is_v6() ? fmt::format("[{}]", host) : host, at.port());
}

std::optional<asio::ip::tcp::endpoint> parse_tcp_address(std::string_view text, bool is_tls) {
  if (!text.starts_with(prefix_of(is_tls))) return std::nullopt;
  text.remove_prefix(prefix_of(is_tls).size());
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code failure;
  const auto address = asio::ip::make_address(std::string(host), failure);
  unsigned port = 0;
  for (const char digit : text.substr(colon + 1)) {
    if (digit < '0' || digit > '9' || port > 65'535) return std::nullopt;
    port = 10 * port + static_cast<unsigned>(digit - '0');
  }
  if (failure || port == 0 || port > 65'535) return std::nullopt;
  return asio::ip::tcp::endpoint(address, static_cast<unsigned short>(port));
}

}  // namespace motley
