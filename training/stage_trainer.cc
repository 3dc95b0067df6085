#include "training/stage_trainer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/layers/chain.h"
#include "partitioner/search/planner.h"

namespace motley {
namespace {

std::span<float> floats_of(const at::Tensor& tensor) {
  MOTLEY_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
               "boundary tensors are contiguous fp32");
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// Of an undefined tensor none.
OwnedFloats owned_floats(at::Tensor tensor) {
  if (!tensor.defined()) return {};
  const std::span<float> floats = floats_of(tensor);
  return {floats, std::make_shared<const at::Tensor>(std::move(tensor))};
}

// A tensor of the same memory, which keeps the owner.
at::Tensor tensor_over(OwnedFloats floats, const std::vector<std::int64_t>& sizes) {
  MOTLEY_CHECK(static_cast<std::int64_t>(floats.values.size()) == c10::multiply_integers(sizes),
               "{} floats cross a boundary of {}", floats.values.size(),
               c10::multiply_integers(sizes));
  float* const first = floats.values.data();
  return at::from_blob(
      first, sizes, [owner = std::move(floats.owner)](void* /*first*/) {}, at::kFloat);
}

// What a source gave: integers, or floats by their bits.
at::Tensor to_tensor(std::span<const std::int32_t> words,
                     const TensorSpec& spec,
                     std::int64_t samples) {
  const std::vector<std::int64_t> sizes = spec.sizes(samples);
  if (spec.type == NumberType::kFloat32) {
    at::Tensor floats = at::empty(sizes);
    std::memcpy(floats.data_ptr<float>(), words.data(), words.size_bytes());
    return floats;
  }
  at::Tensor integers = at::empty(sizes, at::kLong);
  std::ranges::copy(words, integers.data_ptr<std::int64_t>());
  return integers;
}

}  // namespace

// One run of layers and what waits at its boundaries, by micro-batch.
struct StageTrainer::Chunk {
  LayerChain chain;
  // Of the chain's gradients, those that are summed over the chunk's replicas: all but a shared
  // tied parameter's, which stands first or last.
  std::size_t own_first = 0;
  std::size_t own_count = 0;
  std::map<MicroId, at::Tensor> inputs;
  std::map<MicroId, at::Tensor> output_gradients;

  explicit Chunk(LayerChain layers)
      : chain(std::move(layers)), own_count(chain.gradients().size()) {}

  void leave_out(std::span<const float> tied) {
    const std::span<const float> all = chain.gradients();
    const auto begin = static_cast<std::size_t>(tied.data() - all.data());
    const std::size_t end = begin + tied.size();
    const std::size_t own_end = own_first + own_count;
    // What fills up its place to the next alignment goes with it.
    const bool is_first = begin == 0;
    MOTLEY_CHECK(is_first || own_end - end < LayerChain::kAlignment,
                 "a tied parameter in the middle of a chunk");
    own_first = is_first ? end : own_first;
    own_count = is_first ? own_end - end : begin - own_first;
  }

  std::map<MicroId, at::Tensor>& waiting(ValueKind kind) {
    return kind == ValueKind::kActivation ? inputs : output_gradients;
  }

  at::Tensor take_input(MicroId micro) { return std::move(inputs.extract(micro).mapped()); }

  at::Tensor take_output_gradient(MicroId micro) {
    return std::move(output_gradients.extract(micro).mapped());
  }
};

StageTrainer::StageTrainer(const Config& config,
                           const Plan& plan,
                           Rank self,
                           const ModelSpec& model)
    : config_(config), model_(model), plans_(plan.chunks), micro_batch_(plan.micro_batch) {
  const std::string shared =
      tied_across_ranks(model, plan) ? model.tied_pair()->parameter : std::string();
  for (ChunkId id{0}; id.value < plan.chunk_count(); ++id.value) {
    const ChunkPlan& planned = plans_[id.index()];
    chunks_.emplace_back();
    if (!planned.is_on(self)) continue;
    auto chunk = std::make_unique<Chunk>(LayerChain(config_.model, model, planned.first_layer,
                                                    planned.first_layer + planned.layer_count,
                                                    planned.recompute));
    const bool is_first = planned.replicas.front().rank == self;
    HeldChunk held{id, {}, {}, {}};
    if (is_first) {
      held.voted_layers.resize(static_cast<std::size_t>(planned.layer_count));
      std::iota(held.voted_layers.begin(), held.voted_layers.end(), planned.first_layer);
    }
    for (const LayerChain::Parameter& parameter : chunk->chain.parameters()) {
      if (parameter.spec.name == shared) chunk->leave_out(parameter.gradients);
      held.parameters.push_back(
          {parameter.layer, is_first, parameter.spec, parameter.values, parameter.gradients});
    }
    held.summed_gradients = chunk->chain.gradients().subspan(chunk->own_first, chunk->own_count);
    held_.push_back(std::move(held));
    chunks_.back() = std::move(chunk);
  }
}

StageTrainer::~StageTrainer() = default;

Result<std::unique_ptr<StageTrainer>> StageTrainer::make(
    const Config& config, const Plan& plan, Rank self, const ModelSpec& model, WorkCounter& work) {
  std::unique_ptr<StageTrainer> trainer(new StageTrainer(config, plan, self, model));
  if (trainer->chunks_.front() != nullptr) {
    MOTLEY_ASSIGN(trainer->source_,
                  open_source(config.data, model.sample, config.train.seed, &work));
  }
  return trainer;
}

StageTrainer::Chunk& StageTrainer::chunk_at(ChunkId chunk) {
  MOTLEY_CHECK(chunks_[chunk.index()] != nullptr, "chunk {} is on another rank", chunk.value);
  return *chunks_[chunk.index()];
}

bool StageTrainer::is_last(ChunkId chunk) const {
  return chunk.index() + 1 == chunks_.size();
}

MicroContext StageTrainer::context(MicroId micro) const {
  return {config_.train.seed, position_.step, micro.value, position_.training};
}

void StageTrainer::begin(const BatchPosition& position) {
  position_ = position;
  loss_ = {};
  targets_.clear();
  for (const auto& chunk : chunks_) {
    if (chunk != nullptr) chunk->chain.drop_saved();
  }
}

std::span<const std::int32_t> StageTrainer::load(MicroId micro) {
  const auto input_count = static_cast<std::size_t>(model_.sample.input.count());
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
  chunk_at(ChunkId{0}).inputs[micro] = to_tensor(inputs, model_.sample.input, micro_batch_);
  // Only the rank of the loss keeps more than one micro-batch's targets; elsewhere they leave now.
  if (chunks_.back() == nullptr) targets_.clear();
  return targets_[micro] = std::move(targets);
}

std::span<std::int32_t> StageTrainer::targets_room(MicroId micro) {
  return targets_[micro] = std::vector<std::int32_t>(targets_count());
}

std::size_t StageTrainer::targets_count() const {
  return static_cast<std::size_t>(micro_batch_ * model_.sample.target.count());
}

std::vector<std::int64_t> StageTrainer::sizes_after(ChunkId chunk) const {
  const ChunkPlan& planned = plans_[chunk.index()];
  const auto last = static_cast<std::size_t>(planned.first_layer + planned.layer_count - 1);
  return boundary_sizes(model_.layers[last], micro_batch_);
}

std::vector<std::int64_t> StageTrainer::sizes_of(const Value& value) const {
  const bool is_input = value.kind == ValueKind::kActivation;
  return sizes_after(is_input ? ChunkId{value.chunk.value - 1} : value.chunk);
}

std::size_t StageTrainer::boundary_floats(ChunkId chunk) const {
  return static_cast<std::size_t>(c10::multiply_integers(sizes_after(chunk)));
}

std::span<float> StageTrainer::room(const Value& value) {
  at::Tensor& place = chunk_at(value.chunk).waiting(value.kind)[value.micro];
  place = at::empty(sizes_of(value));
  return floats_of(place);
}

void StageTrainer::hand(const Value& value, OwnedFloats floats) {
  chunk_at(value.chunk).waiting(value.kind)[value.micro] =
      tensor_over(std::move(floats), sizes_of(value));
}

OwnedFloats StageTrainer::forward(ChunkId chunk, MicroId micro) {
  Chunk& here = chunk_at(chunk);
  if (is_last(chunk)) {
    add_loss(here, micro);
    return {};
  }
  return owned_floats(here.chain.forward(here.take_input(micro), context(micro)));
}

void StageTrainer::add_loss(Chunk& chunk, MicroId micro) {
  const at::Tensor targets =
      to_tensor(targets_.extract(micro).mapped(), model_.sample.target, micro_batch_);
  const LossLayer::Outcome outcome =
      chunk.chain.forward_loss(chunk.take_input(micro), targets, context(micro));
  loss_.sum += outcome.loss_sum;
  loss_.tokens += outcome.tokens;
  if (outcome.correct) loss_.correct = loss_.correct.value_or(0) + *outcome.correct;
}

OwnedFloats StageTrainer::backward(ChunkId chunk,
                                   MicroId micro,
                                   BackwardPart part,
                                   const OnFinal& on_final) {
  Chunk& here = chunk_at(chunk);
  if (on_final) {
    here.chain.tell_final([skipped = here.own_first, on_final](std::size_t first) {
      on_final(std::max(first, skipped) - skipped);
    });
  }
  switch (part) {
    case BackwardPart::kWhole:
      return owned_floats(
          is_last(chunk) ? here.chain.backward_loss(context(micro))
                         : here.chain.backward(here.take_output_gradient(micro), context(micro)));
    case BackwardPart::kInput:
      return owned_floats(is_last(chunk) ? here.chain.backward_loss_input(context(micro))
                                         : here.chain.backward_input(
                                               here.take_output_gradient(micro), context(micro)));
    case BackwardPart::kWeights:
      here.chain.backward_weight(micro.value);
      return {};
  }
  return {};
}

}  // namespace motley
