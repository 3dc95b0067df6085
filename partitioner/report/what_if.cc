#include "partitioner/report/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/json/json_fields.h"
#include "base/toml.h"
#include "compression/codec_chain.h"
#include "partitioner/report/scaled_profile.h"
#include "plan/units.h"

namespace motley {
namespace {

constexpr const char* kPossible =
    "use link.MACHINE.bandwidth_mbps=N, link.A.B.latency_us=N, network.bandwidth_mbps=N, "
    "machine.NAME.memory_gib=N, machine.NAME.speed=FACTOR, machine.NAME.medium=cable, codec=CHAIN, "
    "gradients=CHAIN, micro_batch=N, drop=NAME and add=NAME; N may be x2.5 for 2.5 times the value";

// Wide enough for any machine and link, and narrow enough to avoid overflow of times and sizes.
constexpr double kLeast = 1e-3;
constexpr double kMost = 1e9;

// A value as written: a number, or a factor on the current value.
struct Value {
  double number = 0;
  bool relative = false;

  [[nodiscard]] double of(double now, double unit) const {
    return relative ? now * number : number * unit;
  }
};

// One change: its text split at '=', and the errors that name it.
class Change {
 public:
  Change(PlanningInput& input, const std::string& text) : input_(input), text_(text) {
    const std::size_t equals = text.find('=');
    key_ = text.substr(0, equals);
    if (equals != std::string::npos) value_ = text.substr(equals + 1);
  }

  Result<void> apply() {
    if (key_ == "drop") return drop();
    if (key_ == "add") return add();
    if (key_ == "codec") return set_codec();
    if (key_ == "gradients") return set_gradient_codec();
    if (key_ == "micro_batch") return set_micro_batch();
    const std::size_t first = key_.find('.');
    const std::size_t last = key_.rfind('.');
    if (first == std::string::npos) return not_understood();
    const std::string kind = key_.substr(0, first);
    const std::string field = key_.substr(last + 1);
    const std::string name = first < last ? key_.substr(first + 1, last - first - 1) : "";
    if (kind == "network" && name.empty()) return set_network(field);
    if (kind == "link") return set_links(name, field);
    if (kind == "machine") return set_machine(name, field);
    return not_understood();
  }

 private:
  Result<void> drop() {
    MOTLEY_TRY(check_machine(value_));
    if (input_.cluster.machines.size() == 1) {
      return bad("it is the only machine", "leave a machine in the cluster");
    }
    input_ = without_machine(std::move(input_), value_);
    return {};
  }

  Result<void> add() {
    MOTLEY_TRY(check_machine(value_));
    input_ = with_duplicate(std::move(input_), value_);
    return {};
  }

  // Also excludes coarser codecs that the planner could have chosen.
  Result<void> set_codec() {
    MOTLEY_TRY(check_codec());
    if (const auto chain = parse_codec_chain(value_); chain.ok() && chain->for_gradients_only()) {
      return bad("activations between stages cannot be sparse",
                 fmt::format("use it for gradients: gradients={}", value_));
    }
    input_.options.codecs = {value_};
    for (CoarserCodecs& coarser : input_.options.coarser) coarser.codecs.clear();
    return {};
  }

  Result<void> set_gradient_codec() {
    MOTLEY_TRY(check_codec());
    input_.options.gradient_codecs = {value_};
    for (CoarserCodecs& coarser : input_.options.coarser) coarser.gradient_codecs.clear();
    return {};
  }

  Result<void> set_micro_batch() {
    const std::vector<int> possible =
        micro_batch_sizes({.global_batch = input_.options.global_batch});
    const auto size =
        std::ranges::find_if(possible, [&](int each) { return fmt::to_string(each) == value_; });
    if (size == possible.end()) {
      return bad(fmt::format("a step's {} samples cannot be divided into such micro-batches",
                             input_.options.global_batch),
                 fmt::format("use one of {}", fmt::join(possible, ", ")));
    }
    input_.options.micro_batch = *size;
    return {};
  }

  [[nodiscard]] Result<void> check_codec() const {
    if (auto removed = removed_codec(value_)) return *std::move(removed);
    for (const DeviceProfile& device : input_.profile.devices) {
      if (device.codecs.contains(value_)) continue;
      std::vector<std::string> names;
      for (const auto& [name, sample] : device.codecs) names.push_back(name);
      return bad(parse_codec_chain(value_).ok()
                     ? fmt::format("{}/{} was not measured with it", device.machine, device.device)
                     : "unknown codec",
                 fmt::format("measured there: {}", fmt::join(names, ", ")));
    }
    return {};
  }

  Result<void> set_machine(const std::string& name, const std::string& field) {
    if (field != "memory_gib" && field != "speed" && field != "medium") return not_understood();
    MOTLEY_TRY(check_machine(name));
    if (field == "medium") return set_medium(name);
    MOTLEY_ASSIGN(const Value value, read_value());
    if (field == "memory_gib") {
      const double gib = value.of(machine_memory_gib(input_, name), 1);
      if (gib > kMost) {
        return bad("beyond the limit of a machine",
                   fmt::format("write {}=x2 for twice the present value", key_));
      }
      input_ = with_machine_memory(std::move(input_), name, gib);
      return {};
    }
    for (DeviceProfile& device : input_.profile.devices) {
      if (device.machine == name) device = with_times_scaled(std::move(device), 1 / value.number);
    }
    return {};
  }

  Result<void> set_medium(const std::string& name) {
    const auto medium = medium_of_word(value_);
    if (!medium.ok()) return bad(medium.error().cause, medium.error().remedy);
    for (Machine& machine : input_.cluster.machines) {
      if (machine.name != name) continue;
      if (medium->empty()) take_for_the_only_one(machine);
      machine.medium = *medium;
      machine.medium_is_supposed = false;
    }
    return {};
  }

  // With two machines on a shared medium, either may be the wireless one; a change for one of them
  // means that one. With more machines, at most one is not on the medium.
  void take_for_the_only_one(const Machine& machine) {
    if (!machine.medium_is_supposed) return;
    std::vector<Machine*> others;
    for (Machine& other : input_.cluster.machines) {
      if (&other != &machine && other.medium == machine.medium) others.push_back(&other);
    }
    if (others.size() != 1 || !others.front()->medium_is_supposed) return;
    others.front()->medium.clear();
    others.front()->medium_is_supposed = false;
  }

  Result<void> set_network(const std::string& field) {
    Cluster& cluster = input_.cluster;
    LinkSpeed changed = cluster.network;
    MOTLEY_TRY(set_speed(changed, field));
    std::size_t own = 0;  // links with an entry of their own
    for (const LinkOverride& link : cluster.links) {
      own += static_cast<std::size_t>(link.from != link.to && cluster.find(link.from) != nullptr &&
                                      cluster.find(link.to) != nullptr);
    }
    const std::size_t machines = cluster.machines.size();
    if (machines > 1 && own == machines * (machines - 1)) {
      return bad("every link has its own speed, measured or from the cluster file",
                 fmt::format("change them by machine: link.{}.{}={}", cluster.machines.front().name,
                             field, value_));
    }
    // Entries for machines that are gone document the network's speed (without_machine).
    for (LinkOverride& link : cluster.links) {
      const bool is_gone = cluster.find(link.from) == nullptr || cluster.find(link.to) == nullptr;
      if (is_gone && link.speed == cluster.network) link.speed = changed;
    }
    cluster.network = changed;
    return {};
  }

  // `name` is a machine, or two with a dot between; names may contain dots themselves.
  Result<void> set_links(const std::string& name, const std::string& field) {
    const Cluster& cluster = input_.cluster;
    if (cluster.find(name) != nullptr) {
      if (cluster.machines.size() == 1) return bad("it has no links: it is the only machine", "");
      const std::vector<Machine> machines = cluster.machines;
      for (const Machine& other : machines) {
        if (other.name != name) MOTLEY_TRY(set_both_ways(name, other.name, field));
      }
      // Includes links with machines that are gone: they document the speed of this one's network.
      for (LinkOverride& link : input_.cluster.links) {
        if (link.from != name && link.to != name) continue;
        if (cluster.find(link.from) == nullptr || cluster.find(link.to) == nullptr) {
          MOTLEY_TRY(set_speed(link.speed, field));
        }
      }
      return {};
    }
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      const std::string from = name.substr(0, dot);
      const std::string to = name.substr(dot + 1);
      if (from == to || cluster.find(from) == nullptr || cluster.find(to) == nullptr) continue;
      return set_both_ways(from, to, field);
    }
    return check_machine(name);
  }

  Result<void> set_both_ways(const std::string& a, const std::string& b, const std::string& field) {
    MOTLEY_TRY(set_link(a, b, field));
    return set_link(b, a, field);
  }

  Result<void> set_link(const std::string& from, const std::string& to, const std::string& field) {
    LinkSpeed speed = input_.cluster.link(from, to);
    MOTLEY_TRY(set_speed(speed, field));
    for (LinkOverride& link : input_.cluster.links) {
      if (link.from == from && link.to == to) return link.speed = speed, Result<void>();
    }
    input_.cluster.links.push_back({from, to, speed});
    return {};
  }

  Result<void> set_speed(LinkSpeed& speed, const std::string& field) const {
    if (field != "bandwidth_mbps" && field != "latency_us") return not_understood();
    MOTLEY_ASSIGN(const Value value, read_value());
    if (field == "latency_us") {
      speed.latency_s = value.of(speed.latency_s, kSecondsPerMicrosecond);
    } else {
      speed.bandwidth_bytes_per_s = value.of(speed.bandwidth_bytes_per_s, kBytesPerMegabit);
    }
    return {};
  }

  [[nodiscard]] Result<Value> read_value() const {
    Value value;
    std::string_view digits = value_;
    if (digits.starts_with('x')) {
      value.relative = true;
      digits.remove_prefix(1);
    }
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value.number);
    const bool whole = code == std::errc{} && end == digits.data() + digits.size();
    const bool no_latency = key_.ends_with(".latency_us") && value.number == 0;
    if (!whole || !((value.number >= kLeast && value.number <= kMost) || no_latency)) {
      return bad(fmt::format("'{}' is not a number from {} to {:.0f}, or x with such a factor",
                             value_, kLeast, kMost),
                 fmt::format("write {}=2, or {}=x2 for twice the present value", key_, key_));
    }
    return value;
  }

  [[nodiscard]] Result<void> check_machine(const std::string& name) const {
    if (input_.cluster.find(name) != nullptr) return {};
    std::vector<std::string> names;
    for (const Machine& machine : input_.cluster.machines) names.push_back(machine.name);
    const std::string close = closest_word(name, names);
    return bad(fmt::format("no machine is named '{}'", name),
               close.empty() ? fmt::format("the machines are {}", fmt::join(names, ", "))
                             : fmt::format("did you mean '{}'?", close));
  }

  [[nodiscard]] Error not_understood() const { return bad("unknown name of a change", kPossible); }

  [[nodiscard]] Error bad(const std::string& cause, const std::string& remedy) const {
    return {ErrorCode::kUsage, fmt::format("cannot change '{}'", text_), cause, remedy};
  }

  PlanningInput& input_;
  const std::string& text_;
  std::string key_;
  std::string value_;
};

}  // namespace

Result<PlanningInput> apply_changes(PlanningInput input, const std::vector<std::string>& changes) {
  for (const std::string& text : changes) MOTLEY_TRY(Change(input, text).apply());
  return input;
}

std::vector<std::string> dropped_pins(const PlanningInput& before, const PlanningInput& after) {
  const auto is_there = [&](const std::string& machine) {
    return after.cluster.find(machine) != nullptr;
  };
  Pins gone = before.options.pins;
  gone.never.clear();
  std::erase_if(gone.layers, [&](const Pins::LayerPin& pin) { return is_there(pin.machine); });
  std::erase_if(gone.always, is_there);
  std::erase_if(gone.memory_share, [&](const auto& share) { return is_there(share.first); });
  return pin_texts(gone);
}

}  // namespace motley
