#include "partitioner/cost/step_bound.h"

#include <algorithm>
#include <limits>

#include "partitioner/cost/at.h"

namespace motley {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
// Tolerance for rounding: sums are computed as differences here.
constexpr double kBoundRounding = 1e-9;

// The work of a slot in a step, without the update.
struct SlotLoad {
  double begins_s = kUnknown;  // no work before
  double all_s = 0;
  double through_s = 0;       // the part before it passes on its last gradient
  double drain_s = kUnknown;  // from then until the first stage has finished
  double update_s = 0;
};

bool has(const StageChoice& stage, int slot) {
  return std::ranges::find(stage.slots, slot) != stage.slots.end();
}

}  // namespace

void StepBound::add_boundary(const StageChoice& front,
                             const StageChoice& behind,
                             Stage& stage) const {
  if (std::ranges::any_of(front.slots, [&](int slot) { return has(behind, slot); })) return;
  const CostModel& cost = estimate_.table().cost();
  const bool one_link = front.slots.size() == 1 && behind.slots.size() == 1;
  stage.send_s = stage.path_s = stage.receive_s = kUnknown;
  stage.back_send_s = stage.back_path_s = stage.back_receive_s = kUnknown;
  for (const int a : front.slots) {
    const BoundaryPrice& here = estimate_.prices().of(a, stage.last - 1, front.codec);
    for (const int b : behind.slots) {
      const BoundaryPrice& there = estimate_.prices().of(b, stage.last - 1, front.codec);
      const double bytes = std::min(here.activation.bytes, there.activation.bytes);
      const double back_bytes = std::min(here.gradient.bytes, there.gradient.bytes);
      stage.send_s = std::min(stage.send_s, here.activation.send_s);
      stage.receive_s = std::min(stage.receive_s, there.activation.receive_s);
      stage.path_s = std::min(stage.path_s, cost.transfer_s(a, b, bytes));
      stage.back_send_s = std::min(stage.back_send_s, there.gradient.send_s);
      stage.back_receive_s = std::min(stage.back_receive_s, here.gradient.receive_s);
      stage.back_path_s = std::min(stage.back_path_s, cost.transfer_s(b, a, back_bytes));
      if (!one_link) continue;
      stage.load_s = bytes / cost.link(a, b).bandwidth_bytes_per_s;
      stage.back_load_s = back_bytes / cost.link(b, a).bandwidth_bytes_per_s;
    }
  }
}

std::vector<StepBound::Stage> StepBound::stages_of(const Candidate& candidate) const {
  const StageTable& table = estimate_.table();
  const bool split = table.shape().splits_backward();
  std::vector<Stage> stages(candidate.stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageChoice& choice = candidate.stages[i];
    Stage& stage = stages[i];
    const bool is_last = i + 1 == stages.size();
    stage.first = choice.first_layer;
    stage.last = is_last ? table.layer_count() : candidate.stages[i + 1].first_layer;
    stage.forward_s = stage.backward_s = kUnknown;
    for (const int slot : choice.slots) {
      const double forward_s = table.forward_s(slot, stage.first, stage.last);
      const double backward_s =
          split ? table.backward_input_s(slot, stage.first, stage.last) +
                      (choice.recompute ? forward_s : 0)
                : table.pass_s(slot, stage.first, stage.last, choice.recompute) - forward_s;
      stage.forward_s = std::min(stage.forward_s, forward_s);
      stage.backward_s = std::min(stage.backward_s, backward_s);
    }
    if (!is_last) add_boundary(choice, candidate.stages[i + 1], stage);
  }
  return stages;
}

double StepBound::paths_s(const Candidate& candidate, const std::vector<Stage>& stages) const {
  const StepShape& shape = estimate_.table().shape();
  const int others = shape.micro_batches - 1;
  const std::vector<int> in_flight = in_flight_of(candidate.stages, shape);
  // For one micro-batch: from its forward in stage i to the end and back until its backward there;
  // and from then until its backward in the first stage.
  std::vector<double> round_s(stages.size(), 0);
  std::vector<double> back_s(stages.size(), 0);
  for (std::size_t i = stages.size(); i-- > 0;) {
    round_s[i] = stages[i].forward_s + stages[i].backward_s;
    if (i + 1 == stages.size()) continue;
    round_s[i] += stages[i].transfer_path_s() + round_s[i + 1] + stages[i].back_transfer_path_s();
  }
  for (std::size_t i = 1; i < stages.size(); ++i) {
    back_s[i] = stages[i - 1].back_transfer_path_s() + stages[i - 1].backward_s + back_s[i - 1];
  }
  double least_s = 0;
  double begins_s = 0;  // forward in stage i
  for (std::size_t i = 0; i < stages.size(); ++i) {
    double others_s = others * std::max(stages[i].load_s, stages[i].back_load_s);
    if (candidate.stages[i].slots.size() == 1) {
      // That many micro-batches must have come back before another one begins.
      others_s = std::max(others_s, others / in_flight[i] * round_s[i]);
    }
    least_s = std::max(least_s, begins_s + round_s[i] + others_s + back_s[i]);
    begins_s += stages[i].forward_s + stages[i].transfer_path_s();
  }
  return least_s;
}

// The ends of a pipeline on two machines send each other the whole gradient. The first stage's is
// ready last.
double StepBound::tied_s(const Candidate& candidate) const {
  const CostModel& cost = estimate_.table().cost();
  const auto floats = static_cast<double>(cost.sizes().tied_parameters());
  const StageChoice& front = candidate.stages.front();
  const StageChoice& back = candidate.stages.back();
  if (floats == 0 || front.slots.size() != 1 || back.slots.size() != 1) return 0;
  const int from = front.slots.front();
  const int to = back.slots.front();
  if (cost.same_machine(from, to)) return 0;
  const std::string& codec = cost.gradient_codec();
  return cost.encode_s(from, floats, codec) +
         cost.transfer_s(from, to, cost.payload_bytes(from, floats, codec)) +
         cost.decode_s(to, floats, codec);
}

double StepBound::least_s(const Candidate& candidate) const {
  const StageTable& table = estimate_.table();
  const StepShape& shape = table.shape();
  const std::vector<Stage> stages = stages_of(candidate);
  const int queued_max = shape.in_flight(static_cast<int>(stages.size()));
  std::vector<SlotLoad> loads(static_cast<std::size_t>(table.slot_count()));
  double begins_s = 0;  // arrival of the first activation at the stage
  double drain_s = 0;   // after its last gradient is encoded
  double back_s = 0;    // the part in the stage before
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageChoice& choice = candidate.stages[i];
    const Stage& stage = stages[i];
    for (std::size_t k = 0; k < choice.slots.size(); ++k) {
      const int slot = choice.slots[k];
      const int share = choice.batch_split[k];
      SlotLoad& load = loads[at(slot)];
      double pass_s = table.pass_s(slot, stage.first, stage.last, choice.recompute);
      double weight_s = 0;
      if (shape.splits_backward()) {
        const double forward_s = table.forward_s(slot, stage.first, stage.last);
        weight_s = table.backward_weight_s(slot, stage.first, stage.last);
        pass_s = forward_s * (choice.recompute ? 2 : 1) +
                 table.backward_input_s(slot, stage.first, stage.last);
      }
      // A neighbour on the same slot needs no message.
      if (i > 0 && !has(candidate.stages[i - 1], slot)) {
        pass_s +=
            estimate_.prices().of(slot, stage.first - 1, candidate.stages[i - 1].codec).behind_s;
      }
      if (i + 1 < stages.size() && !has(candidate.stages[i + 1], slot)) {
        pass_s += estimate_.prices().of(slot, stage.last - 1, choice.codec).before_s;
      }
      load.begins_s = std::min(load.begins_s, begins_s);
      load.all_s += share * (pass_s + weight_s);
      load.through_s += share * pass_s + std::max(0, share - queued_max) * weight_s;
      load.drain_s = std::min(load.drain_s, drain_s);
      load.update_s += table.update_s(slot, stage.first, stage.last);
    }
    if (i + 1 == stages.size()) break;
    begins_s +=
        stage.forward_s + stage.send_s + stage.path_s + (i > 0 ? stages[i - 1].receive_s : 0);
    drain_s = stage.back_path_s + stage.back_receive_s + stage.backward_s + back_s;
    back_s = stage.back_send_s + drain_s;
  }
  double through_s = paths_s(candidate, stages);
  double all_s = 0;
  double update_s = 0;
  for (const SlotLoad& load : loads) {
    if (load.all_s == 0) continue;
    through_s = std::max(through_s, load.begins_s + load.through_s + load.drain_s);
    all_s = std::max(all_s, load.begins_s + load.all_s);
    update_s = std::max(update_s, load.update_s);
  }
  double least_s = std::max(all_s, through_s + tied_s(candidate)) + update_s;
  if (stages.size() == 1 && candidate.stages.front().slots.size() == 1) {
    least_s *=
        table.cost().slots()[at(candidate.stages.front().slots.front())].single_device_factor;
  }
  return least_s * (1 - kBoundRounding);
}

}  // namespace motley
