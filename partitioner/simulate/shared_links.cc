#include "partitioner/simulate/shared_links.h"

#include <algorithm>
#include <map>
#include <string>

namespace motley {

SharedLinks::SharedLinks(const CostModel& cost,
                         const std::vector<int>& rank_slots,
                         const std::vector<StepMessage>& messages)
    : cost_(cost),
      rank_slots_(rank_slots),
      messages_(messages),
      pairs_(cost.networks().size() * cost.networks().size()),
      states_(messages.size()) {
  for (const int slot : rank_slots) machine_of_.push_back(cost.machine_of(slot));
  std::map<std::string, std::size_t> media;
  for (const CostModel::MachineNetwork& network : cost.networks()) {
    const std::size_t next = ports_queues_.size();
    if (network.medium.empty()) {
      ports_.push_back({next, next + 1});
      ports_queues_.resize(next + 2);
      continue;
    }
    const auto [medium, is_new] = media.emplace(network.medium, next);
    ports_.push_back({medium->second, medium->second});
    if (is_new) ports_queues_.emplace_back();
  }
}

SharedLinks::Route SharedLinks::route(std::size_t number) {
  const StepMessage& message = messages_[number];
  const std::size_t here = machine_of_[message.from];
  const std::size_t there = machine_of_[message.to];
  const LinkSpeed speed = cost_.link(rank_slots_[message.from], rank_slots_[message.to]);
  Route route;
  route.pair = &pairs_[here * ports_.size() + there];
  route.pair_s = message.bytes / speed.bandwidth_bytes_per_s;
  route.latency_s = speed.latency_s;
  if (here == there) return route;
  route.uplink = &ports_queues_[ports_[here].up];
  if (ports_[here].up == ports_[there].down) {
    route.uplink_s = route.pair_s;
    return route;
  }
  route.uplink_s = message.bytes / cost_.networks()[here].up_bytes_per_s;
  route.downlink = &ports_queues_[ports_[there].down];
  route.downlink_s = message.bytes / cost_.networks()[there].down_bytes_per_s;
  return route;
}

void SharedLinks::send(std::size_t number, double now_s) {
  const Route way = route(number);
  if (way.uplink == nullptr) return enter_pair(number, now_s);
  double leaves_s = 0;
  if (messages_[number].is_bulk) {
    states_[number].uplink = way.uplink->queue(way.uplink_s, now_s);
    leaves_s = way.uplink->begin_s(states_[number].uplink);
  } else {
    leaves_s = way.uplink->take(way.uplink_s, now_s);
  }
  // A slow pair delays only its own messages: the uplink continues with those of other pairs.
  if (leaves_s > now_s) return expect(number, Next::kEnterPair, leaves_s);
  enter_pair(number, now_s);
}

std::optional<std::size_t> SharedLinks::run_next() {
  const auto [now_s, id] = events_.top();
  events_.pop();
  if (id >= messages_.size()) {
    leave_bulk(id - messages_.size(), now_s);
    return std::nullopt;
  }
  bool is_there = false;
  switch (states_[id].next) {
    case Next::kEnterPair:
      enter_pair(id, now_s);
      break;
    case Next::kBegin:
      begin_bulk(id, now_s);
      break;
    case Next::kEnterDownlink:
      is_there = enter_downlink(id, now_s);
      break;
    case Next::kArrive:
      is_there = arrive_bulk(id, now_s);
      break;
  }
  return is_there ? std::optional(id) : std::nullopt;
}

void SharedLinks::enter_pair(std::size_t number, double now_s) {
  const Route way = route(number);
  State& state = states_[number];
  if (!messages_[number].is_bulk) {
    const double start_s = way.pair->take(way.pair_s, now_s);
    const double end_s = start_s + way.pair_s;
    state.occupation = {start_s, end_s, end_s + way.latency_s};
    return expect(number, Next::kEnterDownlink, start_s + way.latency_s);
  }
  if (way.uplink != nullptr) {
    const double leaves_s = way.uplink->begin_s(state.uplink);
    if (leaves_s > now_s) return expect(number, Next::kEnterPair, leaves_s);
  }
  state.pair = way.pair->queue(way.pair_s, now_s);
  begin_bulk(number, now_s);
}

void SharedLinks::begin_bulk(std::size_t number, double now_s) {
  const Route way = route(number);
  State& state = states_[number];
  const double start_s = way.pair->begin_s(state.pair);
  if (start_s > now_s) return expect(number, Next::kBegin, start_s);
  state.occupation.start_s = now_s;
  expect(number, Next::kEnterDownlink, now_s + way.latency_s);
  leave_bulk(number, now_s);
}

void SharedLinks::leave_bulk(std::size_t number, double now_s) {
  const Route way = route(number);
  State& state = states_[number];
  double end_s = way.pair->end_s(state.pair, now_s);
  if (way.uplink != nullptr) {
    end_s = std::max(end_s, way.uplink->end_s(state.uplink, now_s));
  }
  if (end_s > now_s) {
    events_.emplace(end_s, messages_.size() + number);
    return;
  }
  state.occupation.end_s = now_s;
  state.has_left = true;
  if (state.next == Next::kArrive) events_.emplace(bulk_arrival_s(number, now_s), number);
}

bool SharedLinks::enter_downlink(std::size_t number, double now_s) {
  const Route way = route(number);
  State& state = states_[number];
  if (!messages_[number].is_bulk) {
    if (way.downlink != nullptr) {
      way.downlink->take(way.downlink_s, now_s);
      state.occupation.arrival_s =
          std::max(state.occupation.arrival_s, way.downlink->values_end_s());
    }
    return true;
  }
  if (way.downlink != nullptr) state.downlink = way.downlink->queue(way.downlink_s, now_s);
  state.next = Next::kArrive;
  if (state.has_left) events_.emplace(bulk_arrival_s(number, now_s), number);
  return false;
}

bool SharedLinks::arrive_bulk(std::size_t number, double now_s) {
  const double arrival_s = bulk_arrival_s(number, now_s);
  if (arrival_s > now_s) {
    events_.emplace(arrival_s, number);
    return false;
  }
  states_[number].occupation.arrival_s = now_s;
  return true;
}

double SharedLinks::bulk_arrival_s(std::size_t number, double now_s) {
  const Route way = route(number);
  const State& state = states_[number];
  const double last_byte_s = std::max(now_s, state.occupation.end_s + way.latency_s);
  if (way.downlink == nullptr) return last_byte_s;
  return std::max(last_byte_s, way.downlink->end_s(state.downlink, now_s));
}

}  // namespace motley
