// The simplest exchange of messages between two processes: one TCP connection, blocking calls, no
// framing. A baseline for a transport's latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace motley {

// Binds to the numeric IPv4 address, writes the port to `port_file` and answers every message of
// `bytes` bytes with one, until the other side closes.
[[nodiscard]] Result<void> serve_pings(const std::string& address,
                                       const std::string& port_file,
                                       std::size_t bytes);

// Half of the median round trip, over `seconds`.
[[nodiscard]] Result<double> measure_ping_s(const std::string& address,
                                            std::uint16_t port,
                                            std::size_t bytes,
                                            double seconds);

}  // namespace motley
