#include "training/stage_trainer.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/host_floats.h"
#include "models/device/product_type.h"
#include "models/kernels/in_parts.h"
#include "partitioner/search/planner.h"
#include "plan/gradient_group.h"
#include "training/memory/device_memory.h"
#include "training/momentum_correction/corrected_allreduces.h"
#include "training/trained_chunk.h"

namespace motley {
StageTrainer::StageTrainer(const Config& config,
                           const Plan& plan,
                           Rank self,
                           const ModelSpec& model,
                           const ParameterRules& rules,
                           const ComputeDevice& device)
    : config_(config),
      model_(model),
      plans_(plan.chunks),
      micro_batch_(plan.micro_batch),
      tensors_(device) {
  const bool is_tied_across = tied_across_ranks(model, plan);
  const std::string shared = is_tied_across ? model.tied_pair()->parameter : std::string();
  const CorrectedAllreduces corrected = corrected_allreduces(config, plan, model, is_tied_across);
  for (ChunkId id{0}; id.value < plan.chunk_count(); ++id.value) {
    const ChunkPlan& planned = plans_[id.index()];
    chunks_.emplace_back();
    if (!planned.is_on(self)) continue;
    auto chunk = std::make_unique<TrainedChunk>(LayerChain(
        config_.model, model, planned.first_layer, planned.first_layer + planned.layer_count,
        {.recompute = planned.recompute,
         .device = device.torch(),
         .products = product_type(device, config.train.precision),
         .loss = loss_options(config.train)}));
    const std::vector<Rank> replicas = replica_ranks(planned);
    const bool is_counted = in_island_of(plan.rounds, self, replicas).front() == self;
    const bool is_first =
        is_counted && (!plan.rounds || island_of(plan.rounds, self) == saved_island(*plan.rounds));
    HeldChunk held{id, {}, {}, {}};
    if (is_counted) {
      held.voted_layers.resize(static_cast<std::size_t>(planned.layer_count));
      std::iota(held.voted_layers.begin(), held.voted_layers.end(), planned.first_layer);
    }
    const std::vector<Rank> tied = tied_members(plan);
    for (const LayerChain::Parameter& parameter : chunk->chain.parameters()) {
      const bool is_shared = parameter.spec.name == shared;
      if (is_shared) chunk->leave_out(parameter.gradient_tensor);
      held.parameters.push_back(
          {.layer = parameter.layer,
           .is_first = is_first,
           .member = member_number(is_shared ? tied : replicas, self),
           .members = static_cast<int>((is_shared ? tied : replicas).size()),
           .is_counted = is_counted,
           .island = island_of(plan.rounds, self),
           .corrected = is_shared ? corrected.tied : corrected.chunks[id.index()],
           .spec = parameter.spec,
           .values = parameter.values,
           .gradients = parameter.gradients,
           .rule = parameter.spec.statistic_momentum ? ParameterRule()
                                                     : rules.of(parameter.spec.name)});
    }
    if (tensors_.on_host()) {
      held.reduced_gradients = chunk->chain.gradients().subspan(chunk->own_first, chunk->own_count);
    } else if (planned.replicas.size() > 1) {
      chunk->mirror = std::make_unique<GradientMirror>(chunk->own_gradients(), tensors_.copies());
    }
    held_.push_back(std::move(held));
    chunks_.back() = std::move(chunk);
  }
}

StageTrainer::~StageTrainer() = default;

Result<std::unique_ptr<StageTrainer>> StageTrainer::make(const Config& config,
                                                         const Plan& plan,
                                                         Rank self,
                                                         const ModelSpec& model,
                                                         ProgressCounter& work,
                                                         const ComputeDevice& device) {
  MOTLEY_ASSIGN(const ParameterRules rules, ParameterRules::make(config.train, model));
  // First, so that memory used for checking it is freed before the layers allocate theirs.
  std::unique_ptr<const Source> source;
  if (plan.chunks.front().is_on(self)) {
    MOTLEY_ASSIGN(source, open_source(config.data, model.sample, config.train.seed, &work));
    source->release_pages();
  }
  std::unique_ptr<StageTrainer> trainer(new StageTrainer(config, plan, self, model, rules, device));
  trainer->source_ = std::move(source);
  return trainer;
}

std::unique_ptr<StateMemory> StageTrainer::make_memory() {
  if (tensors_.on_host()) {
    return host_memory(held_, make_optimizer(config_.train), kernels::in_parts);
  }
  const auto tied = model_.tied_pair();
  std::vector<DeviceMemory::Parameter> parameters;
  std::map<ChunkId, GradientMirror*> mirrors;
  for (const HeldChunk& held : held_) {
    TrainedChunk& chunk = chunk_at(held.chunk);
    if (chunk.mirror != nullptr) mirrors[held.chunk] = chunk.mirror.get();
    auto held_parameter = held.parameters.begin();
    for (const LayerChain::Parameter& parameter : chunk.chain.parameters()) {
      parameters.push_back(
          {parameter.value_tensor.flatten(), parameter.gradient_tensor.flatten(),
           chunk.mirrored(parameter.gradient_tensor),
           chunk.mirror != nullptr || (tied.has_value() && parameter.spec.name == tied->parameter),
           (held_parameter++)->rule.matrix});
    }
  }
  return std::make_unique<DeviceMemory>(std::move(parameters), std::move(mirrors), config_.train,
                                        tensors_.copies(), kernels::in_parts);
}

TrainedChunk& StageTrainer::chunk_at(ChunkId chunk) {
  MOTLEY_CHECK(chunks_[chunk.index()] != nullptr, "chunk {} is on another rank", chunk.value);
  return *chunks_[chunk.index()];
}

bool StageTrainer::is_last(ChunkId chunk) const {
  return chunk.index() + 1 == chunks_.size();
}

MicroContext StageTrainer::context(MicroId micro) const {
  const auto first = position_.training ? 0 : static_cast<std::int64_t>(position_.first_sample);
  return {config_.train.seed, position_.step, micro.value, position_.training, first};
}

void StageTrainer::begin(const BatchPosition& position) {
  position_ = position;
  loss_totals_.reset();
  loss_download_.reset();
  targets_.clear();
  if (source_ != nullptr) source_->release_pages();
  for (const auto& chunk : chunks_) {
    if (chunk == nullptr) continue;
    chunk->chain.drop_saved();
    chunk->chain.begin(position.gradient_scale);
  }
}

std::span<const std::int32_t> StageTrainer::load(MicroId micro) {
  const auto input_count = static_cast<std::size_t>(model_.sample.input_count());
  const auto target_count = static_cast<std::size_t>(model_.sample.target.count());
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(micro_batch_) * input_count);
  std::vector<std::int32_t> targets(targets_count());
  const std::uint64_t first =
      position_.first_sample + static_cast<std::uint64_t>(micro.value) * micro_batch_;
  for (std::size_t b = 0; b < static_cast<std::size_t>(micro_batch_); ++b) {
    const std::span input = std::span(inputs).subspan(b * input_count, input_count);
    const std::span target = std::span(targets).subspan(b * target_count, target_count);
    if (position_.training) {
      source_->train_sample(first + b, input, target);
    } else {
      source_->eval_sample(first + b, input, target);
    }
  }
  chunk_at(ChunkId{0}).inputs[micro] = {
      tensors_.buffer_with_values(inputs, model_.sample.inputs, micro_batch_)};
  // Only the rank with the loss stores targets of several micro-batches; other ranks send them now.
  if (chunks_.back() == nullptr) targets_.clear();
  return targets_[micro] = std::move(targets);
}

std::span<std::int32_t> StageTrainer::targets_buffer(MicroId micro) {
  return targets_[micro] = std::vector<std::int32_t>(targets_count());
}

std::size_t StageTrainer::targets_count() const {
  return static_cast<std::size_t>(micro_batch_ * model_.sample.target.count());
}

const LayerSpec& StageTrainer::last_layer(ChunkId chunk) const {
  const ChunkPlan& planned = plans_[chunk.index()];
  return model_.layers[static_cast<std::size_t>(planned.first_layer + planned.layer_count - 1)];
}

BoundaryLayout StageTrainer::layout_of(const Value& value) const {
  return value.kind == ValueKind::kActivation
             ? activation_layout(last_layer(ChunkId{value.chunk.value - 1}), micro_batch_)
             : gradient_layout(last_layer(value.chunk), micro_batch_);
}

BoundarySize StageTrainer::boundary_size(ChunkId chunk) const {
  return last_layer(chunk).boundary(micro_batch_);
}

BoundaryBuffer StageTrainer::receive_buffer(const Value& value) {
  const BoundaryLayout layout = layout_of(value);
  Arrival& place = chunk_at(value.chunk).waiting(value.kind)[value.micro];
  place = {tensors_.receive_buffer(layout.sizes, layout.type)};
  return BoundaryTensors::parts_of(place.tensor, layout);
}

std::optional<std::span<std::byte>> StageTrainer::message_buffer(const Value& value,
                                                                 const BoundaryMessage& message) {
  const DeviceFormat* const format = tensors_.format_of(message.codec);
  if (format == nullptr) return std::nullopt;
  Arrival& place = chunk_at(value.chunk).waiting(value.kind)[value.micro];
  place = tensors_.message_buffer(*format, message.bytes_max, layout_of(value));
  return bytes_of(place.tensor);
}

std::optional<OwnedBytes> StageTrainer::message_to_host(const OwnedBoundary& made,
                                                        const BoundaryMessage& message) {
  const DeviceFormat* const format = tensors_.format_of(message.codec);
  if (format == nullptr) return std::nullopt;
  OwnedBytes made_there = tensors_.to_host(made, *format);
  MOTLEY_CHECK(made_there.values.size() == message.bytes_max, "{} bytes of {} instead of {}",
               made_there.values.size(), message.codec, message.bytes_max);
  return made_there;
}

OwnedBoundary StageTrainer::to_host(OwnedBoundary made) {
  return tensors_.to_host(std::move(made));
}

void StageTrainer::hand_over_locally(const Value& value, OwnedBoundary made) {
  chunk_at(value.chunk).waiting(value.kind)[value.micro] = {
      tensors_.hand_over(std::move(made), layout_of(value))};
}

OwnedBoundary StageTrainer::forward(ChunkId chunk, MicroId micro) {
  TrainedChunk& here = chunk_at(chunk);
  if (is_last(chunk)) {
    add_loss(here, micro);
    return {};
  }
  at::Tensor input = tensors_.to_layers(here.take_input(micro));
  return tensors_.from_layers(here.chain.forward(std::move(input), context(micro)),
                              boundary_size(chunk).floats);
}

void StageTrainer::add_loss(TrainedChunk& chunk, MicroId micro) {
  const at::Tensor targets =
      tensors_.to_layers({tensors_.buffer_with_values(targets_.extract(micro).mapped(),
                                                      model_.sample.target, micro_batch_),
                          nullptr,
                          {}});
  const LossTotals loss = chunk.chain.forward_loss_unread(
      tensors_.to_layers(chunk.take_input(micro)), targets, context(micro));
  loss_totals_ = loss_totals_.defined() ? loss_totals_ + loss.numbers : loss.numbers;
  if (!tensors_.on_host()) loss_download_ = tensors_.copies().download(loss_totals_);
}

BatchLoss StageTrainer::loss() {
  if (!loss_totals_.defined()) return {};
  if (loss_download_) loss_download_->wait();
  const LossLayer::Outcome outcome =
      chunks_.back()->chain.read_loss(loss_download_ ? loss_download_->host : loss_totals_);
  return {outcome.count, outcome.loss_sum, outcome.correct, outcome.predictions};
}

OwnedBoundary StageTrainer::backward(ChunkId chunk,
                                     MicroId micro,
                                     BackwardPart part,
                                     const OnReady& on_ready) {
  TrainedChunk& here = chunk_at(chunk);
  if (on_ready) {
    here.chain.notify_ready(
        [&here, on_ready](std::size_t first) { here.notify_ready(first, on_ready); });
  }
  at::Tensor made = backward_part(here, chunk, micro, part);
  const std::int64_t floats = made.defined() ? made.numel() : 0;
  OwnedBoundary gradient = tensors_.from_layers(std::move(made), floats);
  if (on_ready && here.mirror != nullptr) here.mirror->finish_fetching(on_ready);
  return gradient;
}

at::Tensor StageTrainer::backward_part(TrainedChunk& here,
                                       ChunkId chunk,
                                       MicroId micro,
                                       BackwardPart part) {
  const auto gradient = [&] { return tensors_.to_layers(here.take_output_gradient(micro)); };
  switch (part) {
    case BackwardPart::kWhole:
      return is_last(chunk) ? here.chain.backward_loss(context(micro))
                            : here.chain.backward(gradient(), context(micro));
    case BackwardPart::kInput:
      return is_last(chunk) ? here.chain.backward_loss_input(context(micro))
                            : here.chain.backward_input(gradient(), context(micro));
    case BackwardPart::kWeights:
      here.chain.backward_weight(micro.value);
      return {};
  }
  return {};
}

}  // namespace motley
