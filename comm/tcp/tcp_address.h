// The text by which peers are told where a rank listens: tls:HOST:PORT, or tcp:HOST:PORT where
// nothing is encrypted (docs/formats/tcp.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

namespace motley {

[[nodiscard]] std::string tcp_address_text(const boost::asio::ip::tcp::endpoint& at, bool is_tls);

// Nothing for any other text, also where only the encryption differs.
[[nodiscard]] std::optional<boost::asio::ip::tcp::endpoint> parse_tcp_address(std::string_view text,
                                                                              bool is_tls);

}  // namespace motley
