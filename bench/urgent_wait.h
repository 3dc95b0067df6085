// The transfer time of a boundary's value between two ranks while bulk messages fill the link.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/transport.h"

namespace motley {

// How the values travel.
enum class ValueWay { kAlone, kBesideBulk, kAsBulk };

struct UrgentWait {
  double median_s = 0;  // until the answer
  double longest_s = 0;
  double bulk_bytes_per_s = 0;
};

// Sends a value of 64 KiB every 50 ms for `seconds`, while twelve all-reduce buckets of 256 KiB
// are in flight. kAsBulk: the values queue among the buckets. The other rank serves.
[[nodiscard]] Result<UrgentWait> measure_urgent_wait(Transport& transport,
                                                     Rank peer,
                                                     double seconds,
                                                     ValueWay way);

// REQUIRES: the other rank measures the same way.
[[nodiscard]] Result<void> serve_urgent_wait(Transport& transport, Rank peer, ValueWay way);

}  // namespace motley
