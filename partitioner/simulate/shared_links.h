// SharedLinks: the time that messages take on links which they share. Each machine has one uplink
// and one downlink, as fast as its fastest link in that direction, and machines of one medium have
// one queue for all of theirs, which a message between two of them passes once, at the speed of
// their pair; each directed pair of machines may be slower. All are queues
// (partitioner/simulate/link_queue.h), and a message cuts through: it begins on the pair when it
// begins to leave the machine, and on the downlink a latency later; it is there when it has passed
// all three. Processes of one machine share one local link and touch neither uplink nor downlink. A
// discrete simulation of its own, which its caller runs in step with the one of the ranks.
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

  // The message leaves its sender. REQUIRES: now_s is neither before that of an earlier call nor
  // behind `next_s`; a message is sent once.
  void send(std::size_t number, double now_s);

  // When something happens on a link; infinity while nothing is under way.
  [[nodiscard]] double next_s() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().first;
  }

  // Lets that happen. Returns the message of which it is known now when it is there.
  // REQUIRES: next_s is finite.
  std::optional<std::size_t> run_next();

  // It occupies the link between the machines from start to end.
  struct Crossing {
    double start_s = 0;
    double end_s = 0;
    double arrival_s = 0;
  };

  // REQUIRES: run_next returned the message.
  [[nodiscard]] const Crossing& crossing(std::size_t number) const {
    return states_[number].crossing;
  }

 private:
  // What a message does next.
  enum class Next : std::uint8_t { kEnterPair, kBegin, kEnterDownlink, kArrive };

  struct State {
    Crossing crossing;
    LinkQueue::Turn uplink;  // these of bulk only
    LinkQueue::Turn pair;
    LinkQueue::Turn downlink;
    Next next = Next::kEnterPair;
    bool has_left = false;  // bulk that is past uplink and pair
  };

  // A machine's two directions towards all others: those of a medium are one and the same.
  struct Port {
    std::size_t up = 0;  // index in ways_
    std::size_t down = 0;
  };

  struct Route {
    LinkQueue* uplink = nullptr;  // and downlink: none inside a machine
    LinkQueue* pair = nullptr;
    LinkQueue* downlink = nullptr;
    double uplink_s = 0;  // how long the message occupies each
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

  // A time and a message; behind their count, the message with the rest as its number leaves the
  // link between the machines. Ties go to the lower.
  using Event = std::pair<double, std::size_t>;

  const CostModel& cost_;
  const std::vector<int>& rank_slots_;
  const std::vector<StepMessage>& messages_;
  std::vector<std::size_t> machine_of_;  // [Rank]
  std::vector<Port> ports_;              // [machine]
  std::vector<LinkQueue> ways_;          // those into the network and out of it
  std::vector<LinkQueue> pairs_;         // [from machine * machines + to machine]
  std::vector<State> states_;            // [message]
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace motley
