#include "training/stage_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/layers/chain.h"
#include "partitioner/search/planner.h"
#include "training/lr_schedule.h"

namespace motley {
namespace {

std::span<float> floats_of(const at::Tensor& tensor) {
  MOTLEY_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
               "boundary tensors are contiguous fp32");
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

OwnedFloats owned_floats(const at::Tensor& tensor) {
  return {floats_of(tensor), std::make_shared<const at::Tensor>(tensor)};
}

// REQUIRES: from owned_floats().
at::Tensor owned_tensor(const OwnedFloats& floats) {
  return *static_cast<const at::Tensor*>(floats.owner.get());
}

at::Tensor to_indices(std::span<const std::int32_t> tokens, std::int64_t samples) {
  at::Tensor indices =
      at::empty({samples, static_cast<std::int64_t>(tokens.size()) / samples}, at::kLong);
  std::ranges::copy(tokens, indices.data_ptr<std::int64_t>());
  return indices;
}

}  // namespace

// One run of layers and what waits at its boundaries, by micro-batch.
struct StageTrainer::Chunk {
  LayerChain chain;
  // Of the chain's gradients, those that are summed over the chunk's replicas: all but a shared
  // tied parameter's, which stands first or last.
  std::size_t own_first = 0;
  std::size_t own_count = 0;
  std::vector<std::int64_t> input_sizes;   // [samples, tokens, floats]; empty for chunk 0
  std::vector<std::int64_t> output_sizes;  // empty for the last chunk
  std::map<MicroId, at::Tensor> inputs;
  std::map<MicroId, at::Tensor> output_gradients;

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

  at::Tensor take_output_gradient(MicroId micro) {
    return std::move(output_gradients.extract(micro).mapped());
  }

  [[nodiscard]] OwnedFloats gradient_to_return(const at::Tensor& gradient) const {
    if (chain.begins_with_tokens()) return {};
    return owned_floats(gradient);
  }
};

StageTrainer::StageTrainer(const Job& job, const ModelSpec& model)
    : config_(job.config),
      model_(model),
      micro_batch_(job.plan.micro_batch),
      chunk_count_(job.plan.chunk_count()) {
  const auto boundary = [&](int layer) {
    const std::int64_t floats =
        model.layers[static_cast<std::size_t>(layer)].output_floats_per_sample;
    return std::vector<std::int64_t>{micro_batch_, model.tokens_per_sample,
                                     floats / model.tokens_per_sample};
  };
  const std::string shared =
      tied_across_ranks(model, job.plan) ? model.tied_pair()->parameter : std::string();
  std::vector<HeldParameter> held;
  for (const ChunkPlan& plan : job.plan.chunks) {
    chunks_.emplace_back();
    if (!plan.is_on(job.rank)) continue;
    const int last = plan.first_layer + plan.layer_count;
    auto chunk = std::make_unique<Chunk>(
        Chunk{LayerChain(config_.model, model, plan.first_layer, last, plan.recompute),
              0,
              0,
              {},
              {},
              {},
              {}});
    if (plan.first_layer > 0) chunk->input_sizes = boundary(plan.first_layer - 1);
    if (!chunk->chain.ends_in_loss()) chunk->output_sizes = boundary(last - 1);
    chunk->own_count = chunk->chain.gradients().size();
    for (const LayerChain::Parameter& parameter : chunk->chain.parameters()) {
      if (parameter.spec.name == shared) chunk->leave_out(parameter.gradients);
      held.push_back({parameter.layer, plan.replicas.front().rank == job.rank, parameter.spec,
                      parameter.values, parameter.gradients});
    }
    chunks_.back() = std::move(chunk);
  }
  state_ = std::make_unique<StageState>(std::move(held), make_optimizer(config_.train));
}

StageTrainer::~StageTrainer() = default;

Result<std::unique_ptr<StageTrainer>> StageTrainer::make(const Job& job,
                                                         const ModelSpec& model,
                                                         WorkCounter& work) {
  std::unique_ptr<StageTrainer> trainer(new StageTrainer(job, model));
  if (trainer->chunks_.front() != nullptr) {
    MOTLEY_ASSIGN(trainer->source_,
                  open_source(job.config.data, job.config.model, job.config.train.seed, &work));
  }
  MOTLEY_TRY(trainer->fill_parameters(job, work));
  return trainer;
}

Result<void> StageTrainer::fill_parameters(const Job& job, WorkCounter& work) {
  if (!job.resume_from.empty()) {
    const WorkCounter::Task loading(work, "loading parameters and moments", state_->saved_bytes());
    MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(job.resume_from, &work));
    const Manifest* manifest = reader.manifest();
    if (manifest == nullptr || manifest->state.model_hash != model_.hash()) {
      return Error{ErrorCode::kConfig, fmt::format("{} is not of this model", job.resume_from), "",
                   "resume with the configuration that the run was started with"};
    }
    progress_ = manifest->state;
    MOTLEY_TRY(state_->load_values(reader));
    MOTLEY_TRY(state_->load_moments(reader));
    // No more ranks than files have written it.
    return state_->load_residuals(reader, static_cast<int>(manifest->files.size()));
  }
  if (!config_.model.init_from.empty()) {
    const WorkCounter::Task loading(work, "loading parameters", state_->value_bytes());
    MOTLEY_ASSIGN(const CheckpointReader reader,
                  CheckpointReader::open(config_.model.init_from, &work));
    return state_->load_values(reader);
  }
  const WorkCounter::Task starting(work, "computing initial values", state_->value_bytes());
  state_->initialize(config_.train.seed, work);
  return {};
}

StageTrainer::Chunk& StageTrainer::chunk_at(ChunkId chunk) {
  MOTLEY_CHECK(chunks_[chunk.index()] != nullptr, "chunk {} is on another rank", chunk.value);
  return *chunks_[chunk.index()];
}

const StageTrainer::Chunk& StageTrainer::chunk_at(ChunkId chunk) const {
  return const_cast<StageTrainer*>(this)->chunk_at(chunk);
}

bool StageTrainer::is_last(ChunkId chunk) const {
  return chunk.value == chunk_count_ - 1;
}

MicroContext StageTrainer::context(MicroId micro) const {
  return {config_.train.seed, position_.step, micro.value, position_.training};
}

void StageTrainer::begin(const BatchPosition& position) {
  position_ = position;
  vote_ = {};
  targets_.clear();
  for (const auto& chunk : chunks_) {
    if (chunk != nullptr) chunk->chain.drop_saved();
  }
}

std::span<const std::int32_t> StageTrainer::load(MicroId micro) {
  const auto context_T = static_cast<std::size_t>(config_.model.context);
  std::vector<std::int32_t> inputs(targets_count());
  std::vector<std::int32_t> targets(targets_count());
  const std::uint64_t first =
      position_.first_sample + static_cast<std::uint64_t>(micro.value) * micro_batch_;
  for (std::size_t b = 0; b < static_cast<std::size_t>(micro_batch_); ++b) {
    const std::span inputs_T = std::span(inputs).subspan(b * context_T, context_T);
    const std::span targets_T = std::span(targets).subspan(b * context_T, context_T);
    if (position_.training) {
      source_->train_sample(first + b, inputs_T, targets_T);
    } else {
      source_->eval_sample(first + b, inputs_T, targets_T);
    }
  }
  chunk_at(ChunkId{0}).inputs[micro] = to_indices(inputs, micro_batch_);
  // Only the rank of the loss keeps more than one micro-batch's targets; elsewhere they leave now.
  if (chunks_.back() == nullptr) targets_.clear();
  return targets_[micro] = std::move(targets);
}

std::span<std::int32_t> StageTrainer::targets_room(MicroId micro) {
  return targets_[micro] = std::vector<std::int32_t>(targets_count());
}

std::size_t StageTrainer::targets_count() const {
  return static_cast<std::size_t>(micro_batch_) * static_cast<std::size_t>(config_.model.context);
}

std::size_t StageTrainer::input_floats(ChunkId chunk) const {
  return static_cast<std::size_t>(c10::multiply_integers(chunk_at(chunk).input_sizes));
}

std::size_t StageTrainer::output_floats(ChunkId chunk) const {
  return static_cast<std::size_t>(c10::multiply_integers(chunk_at(chunk).output_sizes));
}

std::span<float> StageTrainer::input_room(ChunkId chunk, MicroId micro) {
  Chunk& here = chunk_at(chunk);
  return floats_of(here.inputs[micro] = at::empty(here.input_sizes));
}

void StageTrainer::hand_input(ChunkId chunk, MicroId micro, OwnedFloats values) {
  chunk_at(chunk).inputs[micro] = owned_tensor(values);
}

std::span<float> StageTrainer::gradient_room(ChunkId chunk, MicroId micro) {
  Chunk& here = chunk_at(chunk);
  return floats_of(here.output_gradients[micro] = at::empty(here.output_sizes));
}

void StageTrainer::hand_gradient(ChunkId chunk, MicroId micro, OwnedFloats values) {
  chunk_at(chunk).output_gradients[micro] = owned_tensor(values);
}

OwnedFloats StageTrainer::forward(ChunkId chunk, MicroId micro) {
  Chunk& here = chunk_at(chunk);
  if (is_last(chunk)) {
    add_loss(here, micro, context(micro));
    return {};
  }
  return owned_floats(
      here.chain.forward(std::move(here.inputs.extract(micro).mapped()), context(micro)));
}

void StageTrainer::add_loss(Chunk& chunk, MicroId micro, const MicroContext& context) {
  const at::Tensor targets = to_indices(targets_.extract(micro).mapped(), micro_batch_);
  const LossLayer::Outcome outcome =
      chunk.chain.forward_loss(std::move(chunk.inputs.extract(micro).mapped()), targets, context);
  vote_.loss_sum += outcome.loss_sum;
  vote_.tokens += outcome.tokens;
}

OwnedFloats StageTrainer::backward(ChunkId chunk, MicroId micro) {
  Chunk& here = chunk_at(chunk);
  return here.gradient_to_return(
      is_last(chunk) ? here.chain.backward_loss(context(micro))
                     : here.chain.backward(here.take_output_gradient(micro), context(micro)));
}

OwnedFloats StageTrainer::backward_input(ChunkId chunk, MicroId micro) {
  Chunk& here = chunk_at(chunk);
  return here.gradient_to_return(
      is_last(chunk) ? here.chain.backward_loss_input(context(micro))
                     : here.chain.backward_input(here.take_output_gradient(micro), context(micro)));
}

void StageTrainer::backward_weight(ChunkId chunk, MicroId micro) {
  chunk_at(chunk).chain.backward_weight(micro.value);
}

std::span<float> StageTrainer::gradients(ChunkId chunk) {
  const Chunk& here = chunk_at(chunk);
  return chunk_at(chunk).chain.gradients().subspan(here.own_first, here.own_count);
}

void StageTrainer::tell_final(ChunkId chunk, OnFinal on_final) {
  Chunk& here = chunk_at(chunk);
  here.chain.tell_final([skipped = here.own_first, on_final = std::move(on_final)](
                            std::size_t first) { on_final(std::max(first, skipped) - skipped); });
}

std::span<float> StageTrainer::tied_gradient() {
  return state_->tied_gradient(model_.tied_pair()->parameter);
}

void StageTrainer::end_tied_gradient() {
  state_->sum_tied_gradients();
}

std::size_t StageTrainer::vote_bytes_max() const {
  return motley::vote_bytes_max(static_cast<int>(model_.layers.size()));
}

std::vector<std::byte> StageTrainer::vote() {
  if (position_.training) {
    vote_.layers = state_->layer_norms();
  }
  return encode_vote(vote_);
}

Result<void> StageTrainer::count_votes(const std::vector<std::vector<std::byte>>& votes) {
  MOTLEY_ASSIGN(tally_,
                tally_votes(votes, static_cast<int>(model_.layers.size()), position_.training));
  const auto tokens = static_cast<double>(tally_.tokens);
  outcome_ = {tally_.loss_sum / tokens, tally_.tokens, std::sqrt(tally_.squared_norm) / tokens, 0.0,
              !tally_.finite};
  return {};
}

bool StageTrainer::step() {
  outcome_.lr = learning_rate(config_.train, position_.step);
  if (tally_.finite) {
    double scale = 1.0 / static_cast<double>(tally_.tokens);
    const double clip = config_.train.clip;
    if (clip > 0 && outcome_.grad_norm > clip) scale *= clip / outcome_.grad_norm;
    ++progress_.optimizer_updates;
    state_->update(outcome_.lr, static_cast<float>(scale), progress_.optimizer_updates);
  }
  state_->clear_gradients();
  progress_.step = position_.step;
  progress_.samples += static_cast<std::uint64_t>(config_.train.global_batch);
  progress_.tokens += static_cast<std::uint64_t>(tally_.tokens);
  return tally_.finite;
}

}  // namespace motley
