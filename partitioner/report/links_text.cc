#include "partitioner/report/links_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text/text_table.h"
#include "partitioner/cost/step_prices.h"
#include "partitioner/search/planner.h"
#include "plan/gradient_group.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

using MachinePairs = std::set<std::pair<std::string, std::string>>;

void add_each_way(const Plan& plan,
                  const std::vector<Rank>& some,
                  const std::vector<Rank>& others,
                  MachinePairs& pairs) {
  for (const Rank one : some) {
    for (const Rank other : others) {
      const std::string& from = plan.ranks[one.index()].machine;
      const std::string& to = plan.ranks[other.index()].machine;
      if (from == to) continue;
      pairs.emplace(from, to);
      pairs.emplace(to, from);
    }
  }
}

// The pairs of machines between which the plan sends: between stages, and for all-reduces.
MachinePairs links_in_use(const Plan& plan, const ModelSpec& model) {
  MachinePairs pairs;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const std::vector<Rank> ranks = replica_ranks(plan.chunks[c]);
    add_each_way(plan, ranks, ranks, pairs);
    if (c > 0) add_each_way(plan, replica_ranks(plan.chunks[c - 1]), ranks, pairs);
  }
  if (tied_across_ranks(model, plan)) {
    const std::vector<Rank> group_members = tied_members(plan);
    add_each_way(plan, group_members, group_members, pairs);
  }
  return pairs;
}

// Whether the cluster file, or the file of measured links, has an entry for that direction.
bool has_entry(const Cluster& cluster, const std::string& from, const std::string& to) {
  return std::ranges::any_of(
      cluster.links, [&](const LinkOverride& link) { return link.from == from && link.to == to; });
}

// The shared media of the machines that those links connect.
std::string media_text(const MachinePairs& pairs, const Cluster& cluster) {
  std::map<std::string, std::set<std::string>> members;  // by medium
  std::set<std::string> supposed;
  for (const auto& [from, to] : pairs) {
    const Machine* const machine = cluster.find(from);
    if (machine == nullptr || machine->medium.empty()) continue;
    members[machine->medium].insert(from);
    if (machine->medium_is_supposed) supposed.insert(machine->medium);
  }
  std::string text;
  for (const auto& [medium, machines] : members) {
    text += fmt::format("medium    {}: half duplex, {} at different times, as over Wi-Fi{}\n",
                        fmt::join(machines, ", "),
                        machines.size() == 1 ? "it sends and receives" : "they send and receive",
                        supposed.contains(medium) ? ", though one of them may be on a cable" : "");
  }
  return text;
}

// The most bytes that a machine sends to others; for ranks of one machine, that a rank sends.
double most_sent(const std::vector<ReducePrice>& messages, const Plan& plan, bool is_inside_one) {
  std::map<std::string, double> sent;
  for (const ReducePrice& it : messages) {
    const std::string& from = plan.ranks[it.message.from.index()].machine;
    if (is_inside_one) {
      sent[fmt::format("{}", it.message.from.value)] += it.bytes;
    } else if (from != plan.ranks[it.message.to.index()].machine) {
      sent[from] += it.bytes;
    }
  }
  double most = 0;
  for (const auto& [from, bytes] : sent) most = std::max(most, bytes);
  return most;
}

}  // namespace

std::string links_text(const Plan& plan, const ModelSpec& model, const Cluster& cluster) {
  const MachinePairs pairs = links_in_use(plan, model);
  std::vector<std::string> unknown;
  bool is_any_known = false;
  for (const auto& [from, to] : pairs) {
    const Machine* const one = cluster.find(from);
    const Machine* const other = cluster.find(to);
    if (one == nullptr || other == nullptr) continue;
    const bool are_measured =
        capabilities_of(*one).is_measured && capabilities_of(*other).is_measured;
    if (one->address.empty() || !are_measured) continue;
    if (has_entry(cluster, from, to)) {
      is_any_known = true;
    } else if (has_entry(cluster, to, from)) {
      unknown.push_back(fmt::format("{} → {}", from, to));
    } else if (from < to) {
      unknown.push_back(fmt::format("{} – {}", from, to));
    }
  }
  std::string text;
  if (!unknown.empty()) {
    text = fmt::format(
        "links     {}assumed as {}, from the cluster file; `motley probe --output links.json` "
        "measures them, --links plans with them\n",
        is_any_known ? fmt::format("{} ", fmt::join(unknown, ", ")) : "",
        link_rate_text(cluster.network.bandwidth_bytes_per_s));
  }
  return text + media_text(pairs, cluster);
}

std::string allreduce_table(const Plan& plan,
                            const CostModel& cost,
                            const std::vector<int>& slots) {
  const StepPrices prices(plan, cost, slots);
  const std::string sends = plan.rounds ? "sends at most a round" : "sends at most";
  std::vector<TextRow> rows = {{"all-reduce", "over", "codec", sends, "takes"}};
  const auto add = [&](const std::string& name, const std::vector<Rank>& ranks,
                       const std::vector<ReducePrice>& messages, std::int64_t parameters) {
    if (messages.empty()) return;
    std::vector<std::string> machines;
    std::vector<int> group_members;
    for (const Rank rank : ranks) {
      const std::string& machine = plan.ranks[rank.index()].machine;
      if (std::ranges::find(machines, machine) == machines.end()) machines.push_back(machine);
      group_members.push_back(slots[rank.index()]);
    }
    const bool is_inside_one = machines.size() == 1;
    rows.push_back({name, fmt::format("{}", fmt::join(machines, " + ")),
                    is_inside_one ? "none" : plan.gradient_codec,
                    bytes_text(most_sent(messages, plan, is_inside_one)),
                    seconds_text(cost.allreduce_time(group_members, parameters).all_s)});
  };
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    add(fmt::format("stage {}", c), replica_ranks(chunk), prices.reduce(c),
        cost.sizes().reduced_parameters(chunk.first_layer, chunk.first_layer + chunk.layer_count));
  }
  add("tied", tied_members(plan), prices.reduce_tied(), cost.sizes().tied_parameters());
  return rows.size() == 1 ? "" : fmt::format("\n{}", aligned_table(rows));
}

}  // namespace motley
