// The links of the second simulator: all messages at once, each link's in order of arrival.
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
  bool is_bulk = false;  // of an all-reduce, with lower priority
  double arrival_s = 0;
};

using Letters = std::map<std::string, Letter>;  // by name

// Computes every message's arrival from the times of sending: through the sender's uplink, through
// the link of the two machines from the start of sending, then through the downlink one latency
// later. slots: [rank] of the cost model.
void run_links(Letters& letters, const CostModel& cost, const std::vector<int>& slots);

}  // namespace motley
