#include "cluster/reach/link_diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace motley {
namespace {

using Pair = std::pair<std::string, std::string>;  // of machines

bool is_failing(const UnreachedPeer& peer) {
  if (peer.state == LinkState::kAnswers) return false;
  return peer.since_s >= (peer.state == LinkState::kSilent ? kLinkSilent_s : kLinkRefused_s);
}

const UnreachedPeer* report_of(std::span<const LinkEnd> ends, std::size_t from, std::size_t to) {
  for (const UnreachedPeer& peer : ends[from].unreached) {
    if (peer.rank.index() == to) return &peer;
  }
  return nullptr;
}

bool is_failing(std::span<const LinkEnd> ends, std::size_t from, std::size_t to) {
  const UnreachedPeer* report = report_of(ends, from, to);
  return report != nullptr && is_failing(*report);
}

// Ranks of one machine connect in one direction only.
bool is_dead(std::span<const LinkEnd> ends, std::size_t a, std::size_t b) {
  const bool there = is_failing(ends, a, b);
  const bool back = is_failing(ends, b, a);
  if (ends[a].machine == ends[b].machine) return there || back;
  return (there && back) || (there && !ends[b].is_heard) || (back && !ends[a].is_heard);
}

std::string state_text(const UnreachedPeer& peer) {
  if (peer.state != LinkState::kSilent && !peer.words.empty()) return peer.words;
  if (peer.state == LinkState::kRefused) return "refused";
  if (peer.state == LinkState::kNoRoute) return "no route";
  return fmt::format("no answer for {:.0f} s", peer.since_s);
}

std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

// The dead links by machine.
struct DeadLinks {
  std::set<Pair> pairs;                      // the lesser name first
  std::map<Pair, std::string> directions;    // from, to: "m1 to m2 at 10.0.0.2:40123: …"
  std::map<std::string, std::string> hosts;  // of machines that a rank tried to reach
  std::map<std::string, std::set<std::string>> peers;  // of each machine
  std::set<std::string> unheard;

  explicit DeadLinks(std::span<const LinkEnd> ends) {
    for (std::size_t a = 0; a < ends.size(); ++a) {
      for (std::size_t b = a + 1; b < ends.size(); ++b) {
        if (!is_dead(ends, a, b)) continue;
        add(ends, a, b);
        add(ends, b, a);
        pairs.insert(std::minmax(ends[a].machine, ends[b].machine));
      }
    }
  }

  // The machines that are part of the most dead links.
  [[nodiscard]] std::vector<std::string> worst() const {
    std::size_t most = 0;
    for (const auto& [machine, others] : peers) most = std::max(most, others.size());
    std::vector<std::string> worst;
    for (const auto& [machine, others] : peers) {
      if (others.size() == most) worst.push_back(machine);
    }
    return worst;
  }

  [[nodiscard]] std::string directions_text() const {
    std::vector<std::string> texts;
    for (const auto& [pair, text] : directions) texts.push_back(text);
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  // "on m2 'sudo ufw allow from 10.0.0.1'", with one command for each of its peers.
  [[nodiscard]] std::string opening(const std::string& machine) const {
    std::vector<std::string> commands;
    for (const std::string& peer : peers.at(machine)) {
      const auto host = hosts.find(peer);
      if (host == hosts.end()) continue;
      commands.push_back(fmt::format("'sudo ufw allow from {}'", host->second));
    }
    return commands.empty() ? "" : fmt::format("on {} {}", machine, fmt::join(commands, " and "));
  }

 private:
  void add(std::span<const LinkEnd> ends, std::size_t from, std::size_t to) {
    const LinkEnd& end = ends[from];
    const LinkEnd& other = ends[to];
    peers[end.machine].insert(other.machine);
    if (!end.is_heard) unheard.insert(end.machine);
    const UnreachedPeer* report = report_of(ends, from, to);
    if (report == nullptr) return;
    hosts[other.machine] = host_of(report->address);
    directions.emplace(Pair{end.machine, other.machine},
                       fmt::format("{} to {} at {}: {}", end.machine, other.machine,
                                   report->address, state_text(*report)));
  }
};

PeerFailure lost_machine(const DeadLinks& dead) {
  const std::string& machine = *dead.unheard.begin();
  return {.error = {.code = ErrorCode::kPeer,
                    .what = fmt::format("machine {} was lost before it was ready", machine),
                    .cause = fmt::format("{}; and the launcher receives nothing from it",
                                         dead.directions_text()),
                    .remedy = fmt::format("check that {} is on, awake and reachable", machine)},
          .fault = {.machines = {machine}, .cannot_connect = false}};
}

PeerFailure one_apart(const DeadLinks& dead, const std::string& machine) {
  return {
      .error = {.code = ErrorCode::kPeer,
                .what = fmt::format("{} accepts no connections from {}, and cannot connect to {}",
                                    machine, fmt::join(dead.peers.at(machine), ", "),
                                    dead.peers.at(machine).size() == 1 ? "it" : "them"),
                .cause =
                    fmt::format("{}; commands reach {}, so it is on; probably a firewall there",
                                dead.directions_text(), machine),
                .remedy = "allow connections of the other machines to all ports, " +
                          dead.opening(machine)},
      .fault = {.machines = {machine}, .cannot_connect = true}};
}

PeerFailure two_apart(const DeadLinks& dead) {
  const auto& [a, b] = *dead.pairs.begin();
  std::string remedy = fmt::format(
      "check the cables and the switch between {} and {}, client isolation of the Wi-Fi, and "
      "firewalls",
      a, b);
  for (const std::string& machine : {a, b}) {
    if (const std::string command = dead.opening(machine); !command.empty()) {
      remedy += ", " + command;
    }
  }
  const bool is_one = a == b;
  return {
      .error = {.code = ErrorCode::kPeer,
                .what = is_one ? fmt::format("processes on {} cannot connect to each other", a)
                               : fmt::format("{} and {} cannot connect to each other", a, b),
                .cause = fmt::format("{}; commands reach both", dead.directions_text()),
                .remedy = std::move(remedy)},
      .fault = {.machines = is_one ? std::vector{a} : std::vector{a, b}, .cannot_connect = true}};
}

PeerFailure many_apart(const DeadLinks& dead) {
  std::vector<std::string> pairs;
  for (const auto& [a, b] : dead.pairs) pairs.push_back(fmt::format("{} and {}", a, b));
  std::vector<std::string> openings;
  for (const auto& [machine, others] : dead.peers) openings.push_back(dead.opening(machine));
  return {
      .error =
          {.code = ErrorCode::kPeer,
           .what = fmt::format("machines cannot connect to each other: {}", fmt::join(pairs, ", ")),
           .cause = fmt::format(
               "{}; commands reach them; probably firewalls, or client isolation of the network",
               dead.directions_text()),
           .remedy = fmt::format("allow connections between the machines, {}",
                                 fmt::join(openings, ", "))},
      .fault = {.machines = dead.worst(), .cannot_connect = true}};
}

}  // namespace

std::optional<PeerFailure> diagnose_link(std::span<const LinkEnd> ends) {
  const DeadLinks dead(ends);
  if (dead.pairs.empty()) return {};
  const std::vector<std::string> worst = dead.worst();
  const bool one_explains_all = std::ranges::any_of(worst, [&](const std::string& machine) {
    return dead.peers.at(machine).size() == dead.pairs.size();
  });
  if (dead.unheard.size() == 1 &&
      dead.peers.at(*dead.unheard.begin()).size() == dead.pairs.size()) {
    return lost_machine(dead);
  }
  if (dead.pairs.size() == 1) return two_apart(dead);
  return worst.size() == 1 && one_explains_all ? one_apart(dead, worst.front()) : many_apart(dead);
}

std::vector<std::string> one_way_lines(std::span<const LinkEnd> ends) {
  std::map<Pair, std::string> lines;
  for (const LinkEnd& end : ends) {
    for (const UnreachedPeer& peer : end.unreached) {
      if (peer.state == LinkState::kAnswers || peer.rank.index() >= ends.size()) continue;
      const std::string& other = ends[peer.rank.index()].machine;
      lines.emplace(
          Pair{end.machine, other},
          fmt::format("{} could not connect to {} at {} ({}), but they are connected now; if this "
                      "is repeated at each start, a firewall on {} blocks incoming connections",
                      end.machine, other, peer.address, state_text(peer), other));
    }
  }
  std::vector<std::string> texts;
  for (auto& [pair, line] : lines) texts.push_back(std::move(line));
  return texts;
}

}  // namespace motley
