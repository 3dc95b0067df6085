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

}  // namespace motley
