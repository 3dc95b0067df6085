// How long a boundary's value takes from one rank to another while bulk fills the link between
// them.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/transport.h"

namespace motley {

// How the values travel.
enum class ValueWay { kAlone, kBesideBulk, kAsBulk };

struct UrgentWait {
  double median_s = 0;  // until it is answered
  double longest_s = 0;
  double bulk_bytes_per_s = 0;
};

// A value of 64 KiB each 50 ms for so long, beside buckets of sums of 256 KiB, twelve under way.
// kAsBulk: the values wait for their turn among the buckets. The other rank serves.
[[nodiscard]] Result<UrgentWait> measure_urgent_wait(Transport& transport,
                                                     Rank peer,
                                                     double seconds,
                                                     ValueWay way);

// REQUIRES: the other rank measures, in the same way.
[[nodiscard]] Result<void> serve_urgent_wait(Transport& transport, Rank peer, ValueWay way);

}  // namespace motley
