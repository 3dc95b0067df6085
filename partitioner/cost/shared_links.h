// SharedLinks: the time that messages take on links which they share. Each machine has one uplink
// and one downlink, as fast as its fastest link in that direction; each directed pair of machines
// may be slower. All are queues, and a message cuts through: it leaves one while it still enters
// it. Processes of one machine share one local link and touch neither uplink nor downlink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partitioner/cost/cost_model.h"

namespace motley {

class SharedLinks {
 public:
  // rank_slots: [Rank] the cost model's slot. Both must outlive it.
  SharedLinks(const CostModel& cost, const std::vector<int>& rank_slots);

  // A message on its way: it occupies the link between the machines from start to end.
  struct Passage {
    double start_s = 0;
    double end_s = 0;
    double first_byte_s = 0;  // at the receiver's machine
    double last_byte_s = 0;   // there, if its downlink were free
  };

  // Takes the message out of its sender's machine. REQUIRES: now_s does not go back from call to
  // call, so that messages leave in the order of their times.
  Passage leave(std::size_t from, std::size_t to, double bytes, double now_s);

  // When the message is there. REQUIRES: called at `first_byte_s`, in the order of these times.
  double reach(std::size_t from, std::size_t to, double bytes, double last_byte_s, double now_s);

 private:
  // A direction of a machine towards all others.
  struct Port {
    double bandwidth_bytes_per_s = 0;
    double free_s = 0;

    // When a message that comes now begins; the port is then taken for all of its bytes.
    double take(double bytes, double now_s);
  };

  const CostModel& cost_;
  const std::vector<int>& rank_slots_;
  std::vector<std::uint32_t> machine_of_;  // [Rank]
  std::vector<Port> uplinks_;              // [machine]
  std::vector<Port> downlinks_;            // [machine]
  std::vector<double> pair_free_s_;        // [from machine * machines + to machine]
};

}  // namespace motley
