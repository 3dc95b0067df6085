#include "models/layers/graph_core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/graph/graph_failure.h"
#include "models/graph/scalar_type.h"
#include "models/layers/boundary_layout.h"
#include "models/layers/placed_draws.h"

namespace motley {
namespace {

using Tensors = std::vector<at::Tensor>;

bool shares_memory(const at::Tensor& tensor, const SavedTensors& kept) {
  return std::ranges::any_of(kept, [&](const at::Tensor& other) {
    return other.defined() && other.storage().data() == tensor.storage().data();
  });
}

// The position and the number of samples of a micro-batch, as the first saved tensor: the parts of
// backward do not get them as arguments. On the host.
at::Tensor position_of(std::int64_t samples, const MicroContext& micro) {
  at::Tensor position = at::empty({4}, at::kLong);
  std::ranges::copy(std::array{samples, micro.seed, micro.step, micro.micro},
                    position.data_ptr<std::int64_t>());
  return position;
}

std::pair<std::int64_t, MicroContext> split_off_position(SavedTensors& saved) {
  const auto* const numbers = saved.at(0).data_ptr<std::int64_t>();
  const std::pair<std::int64_t, MicroContext> position = {numbers[0],
                                                          {numbers[1], numbers[2], numbers[3]}};
  saved.erase(saved.begin());
  return position;
}

// The saved values that a graph takes.
std::vector<bool> saved_taken(const Graph& graph, std::size_t saved) {
  std::vector<bool> taken(saved);
  for (const RoleIndex& take : graph.takes) {
    if (take.role == Role::kSaved) taken[static_cast<std::size_t>(take.index)] = true;
  }
  return taken;
}

}  // namespace

const at::Tensor& GraphRoles::get(RoleIndex role) const {
  return tensors_[static_cast<std::size_t>(role.role)].at(static_cast<std::size_t>(role.index));
}

void GraphRoles::put(RoleIndex role, at::Tensor tensor) {
  Tensors& tensors = (*this)[role.role];
  const auto index = static_cast<std::size_t>(role.index);
  if (tensors.size() <= index) tensors.resize(index + 1);
  tensors[index] = std::move(tensor);
}

GraphCore::GraphCore(std::shared_ptr<PreparedPackage> prepared,
                     int index,
                     LayerParameters parameters)
    : prepared_(std::move(prepared)),
      index_(index),
      layer_(prepared_->package().layers.at(static_cast<std::size_t>(index))),
      runners_(prepared_->runners(index)),
      inputs_(prepared_->package().inputs_of(index)),
      device_(prepared_->device()),
      constants_(prepared_->constants(index)),
      gradients_(std::move(parameters.gradients)) {
  const std::size_t count = layer_.parameters.size() + layer_.statistics.size();
  MOTLEY_CHECK(parameters.values.size() == count && gradients_.size() == count,
               "layer {} has {} parameters and statistics, not {}", index, count,
               parameters.values.size());
  const auto first_statistic =
      parameters.values.begin() + static_cast<std::ptrdiff_t>(layer_.parameters.size());
  parameters_.assign(parameters.values.begin(), first_statistic);
  statistics_.assign(first_statistic, parameters.values.end());
  const auto saved = static_cast<std::size_t>(runners_.forward.graph().count_given(Role::kSaved));
  weights_take_ = saved_taken(runners_.weight_part.graph(), saved);
  parts_take_ = saved_taken(runners_.input_part.graph(), saved);
  for (std::size_t k = 0; k < saved; ++k) {
    if (weights_take_[k]) parts_take_[k] = true;
  }
}

std::int64_t GraphCore::samples_of(const at::Tensor& x) const {
  const std::int64_t per_sample =
      takes_plain_data() ? inputs_.front().count() : elements_per_sample(inputs_);
  MOTLEY_CHECK(x.is_contiguous() && x.numel() % per_sample == 0,
               "{} elements for layer '{}', which needs {} a sample", x.numel(), layer_.name,
               per_sample);
  return x.numel() / per_sample;
}

GraphRoles GraphCore::forward(at::Tensor x,
                              const at::Tensor& targets,
                              const MicroContext& micro,
                              SavedTensors& saved) {
  const std::int64_t samples = samples_of(x);
  GraphRoles roles = inputs(std::exchange(x, at::Tensor()), samples);
  if (targets.defined()) {
    roles[Role::kTarget] = {targets.view(prepared_->package().target.sizes(samples))};
  }
  GraphRoles given =
      run(micro.training ? runners_.forward : runners_.evaluate, std::move(roles), samples, micro);
  if (!micro.training) return given;
  saved = {position_of(samples, micro)};
  for (std::size_t k = 0; k < parts_take_.size(); ++k) {
    saved.push_back(parts_take_[k] ? given[Role::kSaved][k] : at::Tensor());
  }
  std::ranges::move(given[Role::kObserved], std::back_inserter(saved));
  return given;
}

at::Tensor GraphCore::score(at::Tensor x) {
  const std::int64_t samples = samples_of(x);
  GraphRoles given = run(*runners_.score, inputs(std::exchange(x, at::Tensor()), samples), samples,
                         {.training = false});
  return given[Role::kOutput].front();
}

at::Tensor GraphCore::backward_input(at::Tensor grad_output, SavedTensors& saved) {
  const auto [samples, micro] = split_off_position(saved);
  add_observed(saved);
  SavedTensors kept = {position_of(samples, micro)};
  for (std::size_t k = 0; k < weights_take_.size(); ++k) {
    kept.push_back(weights_take_[k] ? saved[k] : at::Tensor());
  }
  GraphRoles roles = persistent_roles();
  if (grad_output.defined()) {
    roles[Role::kGrad] =
        unpack_gradients(std::exchange(grad_output, at::Tensor()), layer_.outputs, samples);
  }
  roles[Role::kSaved] = std::exchange(saved, {});
  GraphRoles given = run(runners_.input_part, std::move(roles), samples, micro);
  add_gradients(runners_.input_part, given);
  std::ranges::move(given[Role::kQueued], std::back_inserter(kept));
  saved = std::move(kept);
  if (index_ == 0) return {};
  at::Tensor grad = pack_input_gradients(std::move(given[Role::kInputGrad]), samples);
  return shares_memory(grad, saved) ? grad.clone() : grad;
}

void GraphCore::backward_weight(SavedTensors& saved) {
  const auto [samples, micro] = split_off_position(saved);
  GraphRoles roles = persistent_roles();
  const auto first_queued = saved.begin() + static_cast<std::ptrdiff_t>(weights_take_.size());
  roles[Role::kQueued].assign(first_queued, saved.end());
  saved.erase(first_queued, saved.end());
  roles[Role::kSaved] = std::exchange(saved, {});
  GraphRoles given = run(runners_.weight_part, std::move(roles), samples, micro);
  add_gradients(runners_.weight_part, given);
}

at::Tensor GraphCore::pack_outputs(const Tensors& outputs, std::int64_t samples) const {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const BoundarySpec& spec = layer_.outputs[k];
    check(outputs[k], spec.sizes(samples), "outputs", scalar_type(spec.type));
  }
  return pack_boundary(outputs, layer_.outputs);
}

at::Tensor GraphCore::pack_input_gradients(Tensors given, std::int64_t samples) const {
  given.resize(inputs_.size());
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].gradient) check(given[k], inputs_[k].sizes(samples), "gradients of its inputs");
  }
  return pack_gradients(given, inputs_, device_);
}

at::Tensor GraphCore::zero_gradient(std::int64_t samples) const {
  Tensors zeros;
  for (const BoundarySpec& input : inputs_) {
    zeros.push_back(input.gradient ? at::zeros(input.sizes(samples),
                                               at::TensorOptions(device_).dtype(at::kFloat))
                                   : at::Tensor());
  }
  return pack_gradients(zeros, inputs_, device_);
}

void GraphCore::fail(std::string cause) const {
  throw GraphFailure({ErrorCode::kConfig,
                      fmt::format("layer '{}' returns other results than its package declares",
                                  excerpt(layer_.name)),
                      std::move(cause), "export the model again"});
}

GraphRoles GraphCore::persistent_roles() const {
  GraphRoles roles;
  roles[Role::kParameter] = parameters_;
  roles[Role::kConstant] = constants_;
  roles[Role::kStatistic] = statistics_;
  return roles;
}

GraphRoles GraphCore::inputs(const at::Tensor& x, std::int64_t samples) const {
  GraphRoles roles = persistent_roles();
  roles[Role::kInput] = takes_plain_data() ? Tensors{x.view(inputs_.front().sizes(samples))}
                                           : unpack_boundary(x, inputs_, samples);
  return roles;
}

GraphRoles GraphCore::run(GraphRunner& runner,
                          GraphRoles roles,
                          std::int64_t samples,
                          const MicroContext& micro) {
  Tensors takes;
  takes.reserve(runner.graph().takes.size());
  for (const RoleIndex& role : runner.graph().takes) takes.push_back(roles.get(role));
  roles = {};  // the graph releases its inputs after their last use
  const PlacedDraws draws(micro, index_, samples);
  Result<Tensors> ran = runner.run(std::move(takes), samples, &draws);
  if (!ran.ok()) throw GraphFailure(std::move(ran).error());
  GraphRoles given;
  for (std::size_t k = 0; k < ran->size(); ++k) {
    given.put(runner.graph().gives[k].first, std::move((*ran)[k]));
  }
  return given;
}

void GraphCore::check(const at::Tensor& tensor,
                      at::IntArrayRef sizes,
                      const char* what,
                      at::ScalarType type) const {
  if (tensor.sizes() == sizes && tensor.scalar_type() == type) return;
  fail(fmt::format("its {} are {} [{}]; {} [{}] was expected", what,
                   c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "),
                   c10::toString(type), fmt::join(sizes, ", ")));
}

void GraphCore::add(std::size_t place, const at::Tensor& term, const char* what) {
  check(term, gradients_[place].sizes(), what);
  gradients_[place].add_(term);
}

void GraphCore::add_observed(SavedTensors& saved) {
  const std::size_t first = saved.size() - statistics_.size();
  for (std::size_t k = 0; k < statistics_.size(); ++k) {
    add(parameters_.size() + k, saved[first + k], "observed statistics");
  }
  saved.resize(first);
}

void GraphCore::add_gradients(const GraphRunner& part, GraphRoles& given) {
  for (const auto& [role, value] : part.graph().gives) {
    if (role.role != Role::kParameterGrad) continue;
    add(static_cast<std::size_t>(role.index), given.get(role), "gradients of its parameters");
  }
}

}  // namespace motley
