#include "training/rounds/outer_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/hash.h"
#include "checkpoint/residual_name.h"
#include "run_config/optimizers.h"

namespace motley {
namespace {

std::string velocity_name(const std::string& parameter) {
  return "outer_momentum/" + parameter;
}

std::string local_name(int island, const std::string& parameter) {
  return fmt::format("local.island.{}/{}", island, parameter);
}

bool is_averaged(const StageState::Updated& parameter) {
  return parameter.spec->statistic_momentum.has_value();
}

}  // namespace

void OuterOptimizer::Group::add(const StageState::Updated& parameter, bool overlaps) {
  const auto count = static_cast<std::size_t>(parameter.spec->count());
  parts.push_back({parameter, anchor.size(), count});
  anchor.resize(anchor.size() + count);
  velocity.resize(anchor.size());
  pseudo_gradient.resize(anchor.size());
  if (overlaps) expected.resize(anchor.size());
}

std::span<float> OuterOptimizer::Group::anchor_of(const Part& part) {
  return std::span(anchor).subspan(part.first, part.count);
}

std::span<float> OuterOptimizer::Group::pseudo_gradient_of(const Part& part) {
  return std::span(pseudo_gradient).subspan(part.first, part.count);
}

std::span<float> OuterOptimizer::Group::expected_of(const Part& part) {
  return std::span(expected).subspan(part.first, part.count);
}

OuterOptimizer::OuterOptimizer(StageState& state,
                               const TrainConfig& train,
                               bool tied_across_ranks,
                               bool computes_start,
                               Rule rule,
                               std::function<double()> share,
                               std::function<void()> before_change)
    : state_(state),
      start_arrays_(1 + moments_per_parameter(train)),
      computes_start_(computes_start),
      rule_(rule),
      share_(std::move(share)),
      before_change_(std::move(before_change)) {
  for (const StageState::Updated& parameter : state.updated()) {
    Group& group = tied_across_ranks && parameter.is_tied ? tied_ : chunks_[parameter.chunk];
    group.add(parameter, rule_.overlaps);
  }
}

std::vector<OuterOptimizer::Group*> OuterOptimizer::groups() {
  std::vector<Group*> all;
  for (auto& [chunk, group] : chunks_) all.push_back(&group);
  all.push_back(&tied_);
  return all;
}

void OuterOptimizer::begin_round() {
  if (std::exchange(has_anchor_, true)) return;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      std::ranges::copy(state_.values(part.parameter.number), group->anchor_of(part).begin());
    }
  }
}

void OuterOptimizer::offer() {
  before_change_();
  const auto share = static_cast<float>(share_());
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      write_offer(*group, part, share);
      if (rule_.overlaps && !is_averaged(part.parameter)) continue_alone(*group, part);
    }
  }
}

void OuterOptimizer::write_offer(Group& group, const Part& part, float share) {
  const std::span<float> pseudo_gradient = group.pseudo_gradient_of(part);
  if (!part.parameter.is_counted) {
    std::ranges::fill(pseudo_gradient, 0.0F);
    return;
  }
  const std::span<const float> anchor = group.anchor_of(part);
  const std::span<const float> values = state_.values(part.parameter.number);
  for (std::size_t i = 0; i < part.count; ++i) pseudo_gradient[i] = share * (anchor[i] - values[i]);
}

void OuterOptimizer::continue_alone(Group& group, const Part& part) {
  const std::span<const float> anchor = group.anchor_of(part);
  const std::span<const float> values = state_.values(part.parameter.number);
  const std::span<float> expected = group.expected_of(part);
  const auto lr = static_cast<float>(rule_.lr);
  const auto momentum = static_cast<float>(rule_.momentum);
  for (std::size_t i = 0; i < part.count; ++i) {
    const float own = anchor[i] - values[i];
    const float velocity = momentum * group.velocity[part.first + i] + own;
    expected[i] = anchor[i] - lr * (own + momentum * velocity);
  }
  state_.set_values(part.parameter.number, expected);
}

std::span<float> OuterOptimizer::pseudo_gradients(ChunkId chunk) {
  return chunks_[chunk].pseudo_gradient;
}

std::span<float> OuterOptimizer::tied_pseudo_gradient() {
  return tied_.pseudo_gradient;
}

void OuterOptimizer::update(Group& group, const Part& part) {
  const bool averaged = is_averaged(part.parameter);
  const float lr = averaged ? 1.0F : static_cast<float>(rule_.lr);
  const float momentum = averaged ? 0.0F : static_cast<float>(rule_.momentum);
  for (std::size_t i = part.first; i < part.first + part.count; ++i) {
    const float mean = group.pseudo_gradient[i];
    group.velocity[i] = momentum * group.velocity[i] + mean;
    group.anchor[i] -= lr * (mean + momentum * group.velocity[i]);
  }
}

void OuterOptimizer::take_over(Group& group, const Part& part) {
  const std::span<const float> anchor = group.anchor_of(part);
  const std::size_t number = part.parameter.number;
  if (!rule_.overlaps || is_averaged(part.parameter)) return state_.set_values(number, anchor);
  const std::span<const float> values = state_.values(number);
  const std::span<float> merged = group.expected_of(part);  // not needed afterwards
  for (std::size_t i = 0; i < part.count; ++i) merged[i] = anchor[i] + (values[i] - merged[i]);
  state_.set_values(number, merged);
}

void OuterOptimizer::adopt() {
  before_change_();
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      update(*group, part);
      take_over(*group, part);
    }
  }
}

std::optional<std::uint64_t> OuterOptimizer::anchor_hash(const CopyGroup& group) {
  if (!rule_.overlaps || !has_anchor_) return {};
  return hash64(
      std::as_bytes(std::span(group.chunk ? chunks_[*group.chunk].anchor : tied_.anchor)));
}

void OuterOptimizer::exchange_anchor() {
  if (!rule_.overlaps) return;
  before_change_();
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      const std::span<float> kept = group->expected_of(part);
      std::ranges::copy(state_.values(part.parameter.number), kept.begin());
      state_.set_values(part.parameter.number, group->anchor_of(part));
      std::ranges::copy(kept, group->anchor_of(part).begin());
    }
  }
}

// Parameters differ in their numbers of moments: those that lack one send zeros.
void OuterOptimizer::offer_start(int array) {
  before_change_();
  const auto moment = static_cast<std::size_t>(array) - 1;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      const std::span<float> sent = group->pseudo_gradient_of(part);
      const std::size_t number = part.parameter.number;
      const bool is_absent = array > 0 && moment >= state_.moment_count(number);
      if (!computes_start_ || !part.parameter.is_counted || is_absent) {
        std::ranges::fill(sent, 0.0F);
      } else {
        std::ranges::copy(array == 0 ? state_.values(number) : state_.moment(number, moment),
                          sent.begin());
      }
    }
  }
}

void OuterOptimizer::adopt_start(int array) {
  before_change_();
  const auto moment = static_cast<std::size_t>(array) - 1;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      const std::span<const float> received = group->pseudo_gradient_of(part);
      const std::size_t number = part.parameter.number;
      if (array == 0) {
        state_.set_values(number, received);
      } else if (moment < state_.moment_count(number)) {
        state_.set_moment(number, moment, received);
      }
    }
  }
}

std::vector<TensorView> OuterOptimizer::anchor_views() {
  std::vector<TensorView> views;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      if (!part.parameter.is_first) continue;
      views.push_back(
          {part.parameter.spec->name, part.parameter.spec->shape, group->anchor_of(part)});
    }
  }
  return views;
}

std::vector<TensorView> OuterOptimizer::save_views(const std::function<void()>& add_feedback) {
  for (Group* const group : groups()) std::ranges::fill(group->pseudo_gradient, 0.0F);
  add_feedback();
  std::vector<TensorView> views;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      const ParameterSpec& spec = *part.parameter.spec;
      if (part.parameter.is_first) {
        views.push_back({velocity_name(spec.name), spec.shape,
                         std::span(group->velocity).subspan(part.first, part.count)});
      }
      views.push_back({residual_name(part.parameter.member, spec.name, ResidualKind::kRound),
                       spec.shape, group->pseudo_gradient_of(part)});
      if (rule_.overlaps && part.parameter.is_counted) {
        views.push_back({local_name(part.parameter.island, spec.name), spec.shape,
                         state_.values(part.parameter.number)});
      }
    }
  }
  return views;
}

// Islands that the checkpoint does not know begin at the anchor.
Result<void> OuterOptimizer::load_local(const CheckpointReader& reader) {
  std::vector<float> values;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      const std::string name = local_name(part.parameter.island, part.parameter.spec->name);
      if (!reader.has(name)) continue;
      begin_round();
      values.resize(part.count);
      MOTLEY_TRY(reader.read(name, part.parameter.spec->shape, values));
      state_.set_values(part.parameter.number, values);
    }
  }
  return {};
}

Result<FeedbackScope> OuterOptimizer::load(const CheckpointReader& reader, bool in_round) {
  if (in_round && rule_.overlaps) MOTLEY_TRY(load_local(reader));
  const auto names = residual_names(*reader.manifest(), ResidualKind::kRound);
  const auto members = [&](const std::string& parameter) {
    const auto found = names.find(parameter);
    return found == names.end() ? 0 : static_cast<int>(found->second.size());
  };
  FeedbackScope scope = FeedbackScope::kSelf;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      if (members(part.parameter.spec->name) != part.parameter.members) {
        scope = FeedbackScope::kAll;
      }
    }
  }
  std::vector<float> residual;
  for (Group* const group : groups()) {
    for (const Part& part : group->parts) {
      const ParameterSpec& spec = *part.parameter.spec;
      const std::string velocity = velocity_name(spec.name);
      if (reader.has(velocity)) {
        MOTLEY_TRY(reader.read(velocity, spec.shape,
                               std::span(group->velocity).subspan(part.first, part.count)));
      }
      const std::span<float> sum = group->pseudo_gradient_of(part);
      std::ranges::fill(sum, 0.0F);
      const auto found = names.find(spec.name);
      if (found == names.end()) continue;
      const std::string own = residual_name(part.parameter.member, spec.name, ResidualKind::kRound);
      residual.resize(part.count);
      for (const std::string& name : found->second) {
        if (scope == FeedbackScope::kSelf && name != own) continue;
        MOTLEY_TRY(reader.read(name, spec.shape, residual));
        std::ranges::transform(sum, residual, sum.begin(), std::plus<>{});
      }
    }
  }
  return scope;
}

}  // namespace motley
