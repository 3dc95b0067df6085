// The address text of a listening rank: tls:HOST:PORT, or tcp:HOST:PORT without encryption
// (docs/formats/tcp.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

namespace motley {

[[nodiscard]] std::string tcp_address_text(const boost::asio::ip::tcp::endpoint& at, bool is_tls);

// nullopt for any other text, and if its encryption differs from `is_tls`.
[[nodiscard]] std::optional<boost::asio::ip::tcp::endpoint> parse_tcp_address(std::string_view text,
                                                                              bool is_tls);

}  // namespace motley
