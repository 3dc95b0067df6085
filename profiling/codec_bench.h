// The processor cost of sending values to a peer: codec, checksum, and the transport's copies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/transport/transport.h"
#include "plan/profile.h"
#include "run_config/config.h"

namespace motley {

struct WireCost {
  std::map<std::string, CodecSample> codecs;  // by Codec::name
  double message_s = 0;                       // as in DeviceProfile
  double shared_s_per_float = 0;              // likewise, for any transport
};

// The chains that a profile contains besides "none": the formats that every profile measures, their
// cheapest chains with zstd if `all`, because no plan selects them by itself, and the chains of the
// configuration.
[[nodiscard]] std::vector<std::string> chains_to_measure(const CompressionConfig& compression,
                                                         bool all);

// Measures "none" and every given chain on normally distributed values, sent over this machine's
// loopback by a transport with these options (their ranks are replaced). kConfig for an invalid
// codec; else the transport's errors.
[[nodiscard]] Result<WireCost> measure_wire_cost(const std::vector<std::string>& chains,
                                                 const TransportOptions& transport);

}  // namespace motley
