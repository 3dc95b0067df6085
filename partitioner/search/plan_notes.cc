#include "partitioner/search/plan_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace motley {
namespace {

std::string device_name(const DeviceSlot& slot) {
  return slot.machine + "/" + slot.device;
}

std::string device_name(const RankPlan& rank) {
  return rank.machine + "/" + rank.device;
}

std::string step_text(double step_s) {
  if (step_s < 1) return fmt::format("{:.4g} ms", 1e3 * step_s);
  return step_s < 1000 ? fmt::format("{:.4g} s", step_s) : fmt::format("{:.0f} s", step_s);
}

// The codec of the all-reduces between machines, if there are any.
void add_gradient_note(const CostModel& cost, Plan& plan) {
  const auto leaves_machine = [&](const ChunkPlan& chunk) {
    return std::ranges::any_of(chunk.replicas, [&](const Replica& replica) {
      return plan.ranks[replica.rank.index()].machine !=
             plan.ranks[chunk.replicas.front().rank.index()].machine;
    });
  };
  if (plan.gradient_codec == "none" || std::ranges::none_of(plan.chunks, leaves_machine)) return;
  constexpr double kFloats = 1 << 20;
  constexpr double kBytes = 4 * kFloats;
  const int slot = 0;
  plan.notes.push_back(fmt::format(
      "gradients are sent between machines as {}: {:.1f} times fewer bytes, encoded at {:.1f} and "
      "decoded at {:.1f} GB/s of fp32 on {}",
      plan.gradient_codec, kBytes / cost.payload_bytes(slot, kFloats, plan.gradient_codec),
      kBytes / cost.encode_s(slot, kFloats, plan.gradient_codec) / 1e9,
      kBytes / cost.decode_s(slot, kFloats, plan.gradient_codec) / 1e9,
      device_name(cost.slots()[slot])));
}

// Machines that a pin excludes are not listed as left out.
std::string left_out_names(const CostModel& cost, const Pins& pins, const Plan& plan) {
  std::vector<std::string> used;
  for (const RankPlan& rank : plan.ranks) used.push_back(device_name(rank));
  std::vector<std::string> names;
  for (const DeviceSlot& slot : cost.slots()) {
    const auto found = std::find(used.begin(), used.end(), device_name(slot));
    if (found != used.end()) {
      used.erase(found);  // several slots may have one name
    } else if (std::ranges::find(pins.never, slot.machine) == pins.never.end()) {
      names.push_back(device_name(slot));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Whether pins require a machine, which rules out all other machines alone.
bool names_machines(const Pins& pins) {
  return !pins.always.empty() || !pins.layers.empty();
}

// Whether the options rule out a single device, whatever its memory.
bool asks_for_several(const PlanOptions& options) {
  std::set<std::string> machines(options.pins.always.begin(), options.pins.always.end());
  for (const Pins::LayerPin& pin : options.pins.layers) machines.insert(pin.machine);
  return options.stages > 1 || !options.cuts.empty() || machines.size() > 1;
}

}  // namespace

void add_notes(const CostModel& cost,
               const PlanOptions& options,
               const Trials& trials,
               Plan& plan) {
  add_gradient_note(cost, plan);
  if (plan.rank_count() > 1 && trials.single) {
    const double speed = trials.single->plan.predicted_step_s / plan.predicted_step_s;
    plan.notes.push_back(fmt::format(
        "the group is {} {} alone ({} a step instead of {}{})",
        speed >= 1 ? fmt::format("{:.2f} times as fast as", speed) : "slower than",
        device_name(trials.single->plan.ranks.front()), step_text(plan.predicted_step_s),
        step_text(trials.single->plan.predicted_step_s),
        names_machines(options.pins) ? "; the pins exclude any other single one" : ""));
  } else if (plan.rank_count() > 1 && !asks_for_several(options)) {
    plan.notes.push_back(fmt::format("no single device has enough memory for the whole model{}",
                                     options.pins == Pins{} ? "" : " with the pins"));
  } else if (plan.rank_count() == 1 && cost.slots().size() > 1) {
    plan.notes.push_back(
        fmt::format("{} alone is faster than any group", device_name(plan.ranks.front())));
  }
  const std::string left_out = left_out_names(cost, options.pins, plan);
  if (left_out.empty()) return;
  const bool chosen = options.stages == 0 && options.cuts.empty();
  plan.notes.push_back(
      fmt::format("left out: {} ({})", left_out,
                  chosen ? "no shorter step was found with it" : "the number of stages was given"));
}

void note_coarser(const CoarserCodecs& coarser, double step_s, Plan& plan) {
  std::vector<std::string> taken;
  for (const std::string& codec : coarser.codecs) {
    const auto is_taken = [&](const ChunkPlan& chunk) { return chunk.codec == codec; };
    if (std::ranges::any_of(plan.chunks, is_taken)) taken.push_back("activations as " + codec);
  }
  if (std::ranges::find(coarser.gradient_codecs, plan.gradient_codec) !=
      coarser.gradient_codecs.end()) {
    taken.push_back("gradients as " + plan.gradient_codec);
  }
  plan.notes.push_back(
      fmt::format("lossier codecs: {}; with finer codecs a step takes {} (docs/compression.md has "
                  "their effect on training; [compression] can exclude them)",
                  fmt::join(taken, ", "), step_text(step_s)));
}

namespace {

// "300 synchronous ones", "300 of one/cuda:0 alone".
std::string start_text(const Plan& plan) {
  const RoundsPlan& rounds = *plan.rounds;
  if (rounds.start_island < 0) return fmt::format("{} synchronous ones", rounds.start_steps);
  const Rank first = rounds.islands[static_cast<std::size_t>(rounds.start_island)].front();
  return fmt::format("{} of {} alone", rounds.start_steps, plan.ranks[first.index()].machine);
}

// ", each sent during the first 15 of the next".
std::string overlap_text(const RoundsPlan& rounds) {
  if (rounds.overlap_steps == 0) return "";
  return fmt::format(", each sent during the first {} of the next", rounds.overlap_steps);
}

std::string machines_left_out(const Cluster& cluster, const Plan& plan) {
  std::vector<std::string> names;
  for (const Machine& machine : cluster.machines) {
    const auto found = std::ranges::find(plan.ranks, machine.name, &RankPlan::machine);
    if (found == plan.ranks.end()) names.push_back(machine.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void note_rounds(const RoundsContext& context, Plan& plan) {
  const RoundsPlan& rounds = *plan.rounds;
  plan.notes.clear();
  if (context.single) {
    const double alone_s = context.single->predicted_step_s;
    plan.notes.push_back(
        fmt::format("the group is {:.2f} times as fast as {} alone ({} a step instead of {})",
                    alone_s / plan.predicted_step_s, device_name(context.single->ranks.front()),
                    step_text(plan.predicted_step_s), step_text(alone_s)));
  }
  if (const std::string names = machines_left_out(context.cluster, plan); !names.empty()) {
    plan.notes.push_back(fmt::format("left out: {} (no shorter step was found with it)", names));
  }
  plan.notes.push_back(fmt::format(
      "{} islands train locally in rounds of {} steps{}, after {}: {:.2f} times as many tokens per "
      "second as the best synchronous plan ({:.3g} s instead of {:.3g} s a step), for about {:.1f} "
      "% more loss at equal tokens",
      rounds.islands.size(), rounds.steps, overlap_text(rounds), start_text(plan),
      context.synchronous_step_s / plan.predicted_step_s, plan.predicted_step_s,
      context.synchronous_step_s, 100 * context.loss_increase));
}

}  // namespace motley
