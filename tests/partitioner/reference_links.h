// The links of the second simulator: all letters at once, each link's in the order in which they
// come to it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"

namespace motley {

struct Letter {
  int from = 0;  // rank
  int to = 0;
  double bytes = 0;
  double sent_s = 0;
  bool is_bulk = false;  // a sum, which lets the others go first
  double arrival_s = 0;
};

using Letters = std::map<std::string, Letter>;  // by name

// Sets every letter's arrival from the times of sending: through its sender's uplink, through the
// link of the two machines from when it begins to leave, then through the downlink a latency later.
// slots: [rank] of the cost model.
void run_links(Letters& letters, const CostModel& cost, const std::vector<int>& slots);

}  // namespace motley
