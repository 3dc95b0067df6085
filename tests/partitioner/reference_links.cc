#include "tests/partitioner/reference_links.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace motley {
namespace {

// A message on one direction of a link.
struct Passing {
  Letter* letter = nullptr;
  double comes_s = 0;
  double duration_s = 0;
  bool is_inwards = false;
  double start_s = 0;
  double end_s = 0;
};

// Values pass one after another in order of arrival; all-reduce messages then fill the gaps, also
// in pieces.
void pass(std::vector<Passing>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Passing& a, const Passing& b) { return a.comes_s < b.comes_s; });
  std::vector<const Passing*> values;
  for (Passing& value : all) {
    if (value.letter->is_bulk) continue;
    value.start_s = std::max(value.comes_s, values.empty() ? 0 : values.back()->end_s);
    value.end_s = value.start_s + value.duration_s;
    values.push_back(&value);
  }
  double now_s = 0;
  for (Passing& sum : all) {
    if (!sum.letter->is_bulk) continue;
    now_s = std::max(now_s, sum.comes_s);
    double left_s = sum.duration_s;
    sum.start_s = -1;
    for (const Passing* value : values) {
      if (value->end_s <= now_s) continue;
      const double gap_s = value->start_s - now_s;
      if (gap_s > 0 && sum.start_s < 0) sum.start_s = now_s;
      if (gap_s >= left_s) break;
      left_s -= std::max(0.0, gap_s);
      now_s = value->end_s;
    }
    if (sum.start_s < 0) sum.start_s = now_s;
    now_s += left_s;
    sum.end_s = now_s;
  }
}

}  // namespace

void run_links(Letters& letters, const CostModel& cost, const std::vector<int>& slots) {
  const auto slot_of = [&](int rank) { return slots[static_cast<std::size_t>(rank)]; };
  const auto machine_of = [&](int rank) {
    return cost.slots()[static_cast<std::size_t>(slot_of(rank))].machine;
  };
  const auto link_of = [&](const Letter& letter) {
    return cost.link(slot_of(letter.from), slot_of(letter.to));
  };
  const auto fastest = [&](const std::string& machine, bool outwards) {
    double best = 0;
    const int count = static_cast<int>(cost.slots().size());
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b < count; ++b) {
        const std::string& from = cost.slots()[static_cast<std::size_t>(a)].machine;
        const std::string& to = cost.slots()[static_cast<std::size_t>(b)].machine;
        if (from == to || (outwards ? from : to) != machine) continue;
        best = std::max(best, cost.link(a, b).bandwidth_bytes_per_s);
      }
    }
    return best;
  };
  // A shared medium has one name for the ways into the network and out of it.
  const auto medium_of = [&](int rank) {
    return cost.networks()[cost.machine_of(slot_of(rank))].medium;
  };
  const auto way_out = [&](int rank) {
    return medium_of(rank).empty() ? machine_of(rank) + " out" : "medium " + medium_of(rank);
  };
  const auto way_in = [&](int rank) {
    return medium_of(rank).empty() ? machine_of(rank) + " in" : "medium " + medium_of(rank);
  };
  const auto pair_s = [&](const Letter& letter) {
    return letter.bytes / link_of(letter).bandwidth_bytes_per_s;
  };
  const auto is_there = [](Letter& letter, double at_s) {
    letter.arrival_s = std::max(letter.arrival_s, at_s);
  };
  // When messages arrive at the ways into their machines. In a shared medium these compete with
  // outgoing messages, so the times of the last round are used until they no longer change. The
  // earliest message is correct first.
  std::map<Letter*, double> comes_in_s;
  while (true) {
    std::map<std::string, std::vector<Passing>> ways;
    std::map<std::string, std::vector<Passing>> pairs;
    const auto enter_pair = [&](Letter& letter, double comes_s) {
      pairs[machine_of(letter.from) + " to " + machine_of(letter.to)].push_back(
          {&letter, comes_s, pair_s(letter)});
    };
    for (auto& [name, letter] : letters) {
      const std::string from = machine_of(letter.from);
      letter.arrival_s = 0;
      if (from == machine_of(letter.to)) {
        enter_pair(letter, letter.sent_s);
        continue;
      }
      const bool is_once = way_out(letter.from) == way_in(letter.to);
      ways[way_out(letter.from)].push_back(
          {&letter, letter.sent_s, is_once ? pair_s(letter) : letter.bytes / fastest(from, true)});
    }
    for (const auto& [letter, at_s] : comes_in_s) {
      ways[way_in(letter->to)].push_back(
          {letter, at_s, letter->bytes / fastest(machine_of(letter->to), false), true});
    }
    for (auto& [way, all] : ways) {
      pass(all);
      for (const Passing& each : all) {
        const double latency_s = each.is_inwards ? 0 : link_of(*each.letter).latency_s;
        is_there(*each.letter, each.end_s + latency_s);
        if (!each.is_inwards) enter_pair(*each.letter, each.start_s);
      }
    }
    std::map<Letter*, double> came_in_s;
    for (auto& [names, all] : pairs) {
      pass(all);
      for (const Passing& each : all) {
        const Letter& letter = *each.letter;
        const double latency_s = link_of(letter).latency_s;
        is_there(*each.letter, each.end_s + latency_s);
        if (machine_of(letter.from) == machine_of(letter.to)) continue;
        if (way_out(letter.from) == way_in(letter.to)) continue;
        came_in_s[each.letter] = each.start_s + latency_s;
      }
    }
    if (came_in_s == comes_in_s) return;
    comes_in_s = std::move(came_in_s);
  }
}

}  // namespace motley
