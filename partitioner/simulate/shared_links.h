// SharedLinks: the transfer times of messages on shared links. Each machine has one uplink and one
// downlink, as fast as its fastest link in that direction. Machines on a shared medium have one
// queue for all of theirs, which a message between two of them passes once, at the speed of their
// pair. Each directed pair of machines may be slower. All are queues
// (partitioner/simulate/link_queue.h), with cut-through forwarding: a message begins on the pair
// when it begins on the uplink, and on the downlink one latency later; it has arrived when it has
// passed all three. Processes of one machine share one local link and use neither uplink nor
// downlink. A discrete-event simulation of its own, which its caller runs in step with that of the
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/simulate/link_queue.h"
#include "partitioner/simulate/step_program.h"

namespace motley {

class SharedLinks {
 public:
  // rank_slots: [Rank] the cost model's slot. All must outlive it.
  SharedLinks(const CostModel& cost,
              const std::vector<int>& rank_slots,
              const std::vector<StepMessage>& messages);

  // Sends the message. REQUIRES: now_s is neither before that of an earlier call nor after
  // `next_s`; a message is sent once.
  void send(std::size_t number, double now_s);

  // The time of the next event on a link; infinity if no message is under way.
  [[nodiscard]] double next_s() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().first;
  }

  // Processes that event. Returns the message whose arrival time is now known. REQUIRES: next_s is
  // finite.
  std::optional<std::size_t> run_next();

  // The message's occupation of the link between the machines.
  struct LinkOccupation {
    double start_s = 0;
    double end_s = 0;
    double arrival_s = 0;
  };

  // REQUIRES: run_next returned the message.
  [[nodiscard]] const LinkOccupation& occupation(std::size_t number) const {
    return states_[number].occupation;
  }

 private:
  // The next event of a message.
  enum class Next : std::uint8_t { kEnterPair, kBegin, kEnterDownlink, kArrive };

  struct State {
    LinkOccupation occupation;
    LinkQueue::Turn uplink;  // the turns are for bulk messages only
    LinkQueue::Turn pair;
    LinkQueue::Turn downlink;
    Next next = Next::kEnterPair;
    bool has_left = false;  // a bulk message that has passed uplink and pair
  };

  // A machine's two directions; on a shared medium both are the same queue.
  struct Port {
    std::size_t up = 0;  // index in ports_queues_
    std::size_t down = 0;
  };

  struct Route {
    LinkQueue* uplink = nullptr;  // uplink and downlink: nullptr inside a machine
    LinkQueue* pair = nullptr;
    LinkQueue* downlink = nullptr;
    double uplink_s = 0;  // the message's time on each
    double pair_s = 0;
    double downlink_s = 0;
    double latency_s = 0;
  };

  Route route(std::size_t number);
  void enter_pair(std::size_t number, double now_s);
  void begin_bulk(std::size_t number, double now_s);
  void leave_bulk(std::size_t number, double now_s);
  bool enter_downlink(std::size_t number, double now_s);
  bool arrive_bulk(std::size_t number, double now_s);
  [[nodiscard]] double bulk_arrival_s(std::size_t number, double now_s);

  void expect(std::size_t number, Next next, double at_s) {
    states_[number].next = next;
    events_.emplace(at_s, number);
  }

  // A time and a message. Numbers from the count of messages on denote the message's departure from
  // the link between the machines. Ties go to the lower number.
  using Event = std::pair<double, std::size_t>;

  const CostModel& cost_;
  const std::vector<int>& rank_slots_;
  const std::vector<StepMessage>& messages_;
  std::vector<std::size_t> machine_of_;  // [Rank]
  std::vector<Port> ports_;              // [machine]
  std::vector<LinkQueue> ports_queues_;  // uplinks, downlinks and shared media
  std::vector<LinkQueue> pairs_;         // [from machine * machines + to machine]
  std::vector<State> states_;            // [message]
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace motley
