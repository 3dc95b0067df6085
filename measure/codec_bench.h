// What it costs a processor to send values to a peer: codec, checksum, and the transport's copies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/transport/transport.h"
#include "plan/profile.h"

namespace motley {

struct WireCost {
  std::map<std::string, CodecSample> codecs;  // by Codec::name
  double message_s = 0;                       // as in DeviceProfile
  double shared_s_per_float = 0;              // likewise, whatever the transport shares
};

// Measures "none" and every given chain on normally distributed values, sent over this machine's
// loopback by the transport of these options, but for the ranks in them. kConfig for a text that is
// not a codec; else what a transport reports.
[[nodiscard]] Result<WireCost> measure_wire_cost(const std::vector<std::string>& chains,
                                                 const TransportOptions& transport);

}  // namespace motley
