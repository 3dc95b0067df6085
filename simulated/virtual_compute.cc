#include "simulated/virtual_compute.h"

#include <algorithm>

#include "base/check.h"
#include "partitioner/search/planner.h"
#include "plan/gradient_group.h"
#include "run_config/optimizers.h"
#include "training/optimizer/optimizer.h"
#include "training/optimizer/parameter_rules.h"

namespace motley {
namespace {

constexpr int kSlot = 0;

// Noise streams outside the range of step numbers, which are the streams of gradients.
constexpr std::uint64_t kOutputStream = std::uint64_t{1} << 63;
constexpr std::uint64_t kGradientStream = kOutputStream + 1;

CostModel device_costs(const ModelSpec& model,
                       const VirtualSpeed& speed,
                       const VirtualJob& job,
                       int micro_batch) {
  DeviceProfile device = virtual_profile(model, speed, job, {micro_batch});
  device.machine = "here";
  device.device = "virtual";
  device.codecs["none"] = CodecSample{};
  Cluster cluster;
  cluster.machines.emplace_back().name = device.machine;
  cluster.machines.front().devices = {device.device};
  auto cost = CostModel::make(model, cluster, {{std::move(device)}}, 1,
                              {.moments_per_parameter = job.moments_per_parameter});
  MOTLEY_CHECK(cost.ok(), "{}", describe(cost.error()));
  return std::move(cost).value();
}

}  // namespace

VirtualJob virtual_job(const TrainConfig& train, const ModelSpec& model) {
  return {train.global_batch, moments_per_parameter(train),
          matrix_flops_per_parameter(train, model)};
}

struct VirtualCompute::Chunk {
  int first_layer = 0;
  int end_layer = 0;
  bool recompute = false;
  bool counts = false;  // this rank is the first replica of its island
  double forward_s = 0;
  double backward_s = 0;  // includes the recomputed forward pass, if any
  double backward_input_s = 0;
  double backward_weight_s = 0;
  // Messages at the chunk's boundaries; sent values are the same for all micro-batches.
  MessageBuffers input;
  std::vector<float> output;
  std::vector<std::byte> exact_output;
  MessageBuffers output_gradient;
  std::vector<float> input_gradient;
  ReducedGradient sum;               // empty if the chunk has no other replica
  std::vector<std::size_t> offsets;  // [layer - first_layer], in the values of `sum`
};

VirtualCompute::VirtualCompute(const TrainConfig& train,
                               const ModelSpec& model,
                               const Plan& plan,
                               Rank self,
                               const VirtualSpeed& speed,
                               std::unique_ptr<WaitTime> time)
    : micro_batch_(plan.micro_batch),
      moments_per_parameter_(moments_per_parameter(train)),
      overlaps_rounds_(plan.rounds && plan.rounds->overlap_steps > 0),
      cost_(device_costs(model, speed, virtual_job(train, model), plan.micro_batch)),
      clock_(std::move(time)),
      noise_(static_cast<std::uint64_t>(train.seed) + static_cast<std::uint64_t>(self.value)) {
  const std::string shared = tied_across_ranks(model, plan) ? model.tied_pair()->parameter : "";
  const auto boundary = [&](int layer) { return cost_.boundary(layer, micro_batch_); };
  std::uint64_t pieces = 0;
  const auto make_sum = [&](std::size_t count) {
    ReducedGradient sum(count, pieces);
    pieces += count / Noise::kPiece + 1;
    return sum;
  };
  for (const ChunkPlan& planned : plan.chunks) {
    const int first = planned.first_layer;
    const int end = first + planned.layer_count;
    chunks_.emplace_back();
    boundaries_.push_back(boundary(end - 1));
    if (!planned.is_on(self)) continue;
    const bool again = planned.recompute;
    auto chunk = std::make_unique<Chunk>();
    chunk->first_layer = first;
    chunk->end_layer = end;
    chunk->recompute = again;
    chunk->counts = in_island_of(plan.rounds, self, replica_ranks(planned)).front() == self;
    chunk->forward_s = cost_.forward_s(kSlot, first, end, micro_batch_);
    chunk->backward_s = cost_.backward_s(kSlot, first, end, micro_batch_, again);
    chunk->backward_input_s = cost_.backward_input_s(kSlot, first, end, micro_batch_, again);
    chunk->backward_weight_s = cost_.backward_weight_s(kSlot, first, end, micro_batch_);
    if (first > 0) {
      const BoundarySize before = boundary(first - 1);
      chunk->input = MessageBuffers(before);
      chunk->input_gradient.resize(static_cast<std::size_t>(before.floats));
      noise_.fill_all(chunk->input_gradient, kGradientStream);
    }
    if (end < static_cast<int>(model.layers.size())) {
      const BoundarySize& after = boundaries_.back();
      chunk->output.resize(static_cast<std::size_t>(after.floats));
      chunk->exact_output.resize(static_cast<std::size_t>(after.exact_bytes));
      chunk->output_gradient = MessageBuffers(after.gradient());
      noise_.fill_all(chunk->output, kOutputStream);
    }
    std::size_t summed = 0;
    for (int layer = first; layer < end; ++layer) {
      chunk->offsets.push_back(summed);
      for (const ParameterSpec& spec : model.layers[static_cast<std::size_t>(layer)].parameters) {
        const auto count = static_cast<std::size_t>(spec.count());
        if (spec.name != shared) {
          summed += count;
        } else if (tied_ == nullptr) {
          tied_ = std::make_unique<ReducedGradient>(make_sum(count));
        }
      }
    }
    if (planned.replicas.size() > 1) chunk->sum = make_sum(summed);
    if (overlaps_rounds_)
      pseudo_gradients_[ChunkId{static_cast<std::int32_t>(chunks_.size()) - 1}] = make_sum(summed);
    chunks_.back() = std::move(chunk);
  }
  if (overlaps_rounds_ && tied_) tied_pseudo_gradient_ = make_sum(tied_->values().size());
  adopt();
  targets_.resize(static_cast<std::size_t>(micro_batch_ * model.sample.target.count()));
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    targets_[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) %
                                            std::max<std::int64_t>(1, model.sample.target_limit));
  }
}

VirtualCompute::~VirtualCompute() = default;

VirtualCompute::Chunk& VirtualCompute::chunk_at(ChunkId chunk) {
  MOTLEY_CHECK(chunks_[chunk.index()] != nullptr, "chunk {} is on another rank", chunk.value);
  return *chunks_[chunk.index()];
}

bool VirtualCompute::fill_piece() {
  const auto stream = static_cast<std::uint64_t>(position_.step);
  for (const auto& chunk : chunks_) {
    if (chunk != nullptr && chunk->sum.fill_piece(noise_, stream)) return true;
  }
  if (tied_ != nullptr && tied_->fill_piece(noise_, stream)) return true;
  for (auto& [chunk, values] : pseudo_gradients_) {
    if (values.fill_piece(noise_, stream)) return true;
  }
  return tied_pseudo_gradient_.fill_piece(noise_, stream);
}

void VirtualCompute::pass(double seconds) {
  clock_.pass(seconds, [this] { return fill_piece(); });
}

void VirtualCompute::begin(const BatchPosition& position) {
  position_ = position;
  loss_ = {};
  for (const auto& chunk : chunks_) {
    if (chunk != nullptr) chunk->sum.begin();
  }
  if (tied_ != nullptr) tied_->begin();
}

std::span<const std::int32_t> VirtualCompute::load(MicroId /*micro*/) {
  return targets_;
}

std::span<std::int32_t> VirtualCompute::targets_buffer(MicroId /*micro*/) {
  return targets_;
}

BoundarySize VirtualCompute::boundary_size(ChunkId chunk) const {
  return boundaries_[chunk.index()];
}

BoundaryBuffer VirtualCompute::receive_buffer(const Value& value) {
  Chunk& here = chunk_at(value.chunk);
  const bool is_input = value.kind == ValueKind::kActivation;
  return is_input ? here.input.next() : here.output_gradient.next();
}

// The values of a simulated device are never read.
void VirtualCompute::hand_over_locally(const Value& /*value*/, OwnedBoundary /*made*/) {}

OwnedBoundary VirtualCompute::forward(ChunkId chunk, MicroId /*micro*/) {
  Chunk& here = chunk_at(chunk);
  clock_.begin();
  pass(here.forward_s);
  if (chunk.index() + 1 == chunks_.size()) {
    loss_.count += static_cast<double>(targets_.size());
  }
  return {{here.output, nullptr, {}}, here.exact_output};
}

OwnedBoundary VirtualCompute::backward(ChunkId chunk,
                                       MicroId /*micro*/,
                                       BackwardPart part,
                                       const OnReady& on_ready) {
  Chunk& here = chunk_at(chunk);
  clock_.begin();
  switch (part) {
    case BackwardPart::kWhole:
      if (on_ready) {
        pass(here.recompute ? here.forward_s : 0);
        pass_weights(here, /*input_part=*/true, on_ready);
      } else {
        pass(here.backward_s);
      }
      return {{here.input_gradient, nullptr, {}}, {}};
    case BackwardPart::kInput:
      pass(here.backward_input_s);
      return {{here.input_gradient, nullptr, {}}, {}};
    case BackwardPart::kWeights:
      if (on_ready) {
        pass_weights(here, /*input_part=*/false, on_ready);
      } else {
        pass(here.backward_weight_s);
      }
      return {};
  }
  return {};
}

double VirtualCompute::layer_backward_s(int layer, bool input_part) const {
  const LayerSample sample = cost_.layer(kSlot, layer, micro_batch_);
  return input_part ? sample.backward_s : sample.backward_weight_s();
}

// The chunk's last backward of the step, layer by layer: a layer's gradient is final when its time
// is over.
void VirtualCompute::pass_weights(Chunk& chunk, bool input_part, const OnReady& on_ready) {
  for (int layer = chunk.end_layer; layer-- > chunk.first_layer;) {
    pass(layer_backward_s(layer, input_part));
    const std::size_t offset = chunk.offsets[static_cast<std::size_t>(layer - chunk.first_layer)];
    chunk.sum.fill_down_to(offset, noise_, static_cast<std::uint64_t>(position_.step));
    on_ready(offset);
  }
}

std::span<float> VirtualCompute::gradients(ChunkId chunk) {
  return chunk_at(chunk).sum.values();
}

std::span<float> VirtualCompute::tied_gradient() {
  MOTLEY_CHECK(tied_ != nullptr, "no use of a shared tied parameter is here");
  return tied_->values();
}

void VirtualCompute::offer() {
  const auto stream = static_cast<std::uint64_t>(position_.step);
  for (auto& [chunk, values] : pseudo_gradients_) values.fill_down_to(0, noise_, stream);
  tied_pseudo_gradient_.fill_down_to(0, noise_, stream);
}

void VirtualCompute::adopt() {
  for (auto& [chunk, values] : pseudo_gradients_) values.begin();
  tied_pseudo_gradient_.begin();
}

std::span<float> VirtualCompute::pseudo_gradients(ChunkId chunk) {
  return overlaps_rounds_ ? pseudo_gradients_[chunk].values() : gradients(chunk);
}

std::span<float> VirtualCompute::tied_pseudo_gradient() {
  if (overlaps_rounds_) return tied_pseudo_gradient_.values();
  return tied_ ? tied_->values() : std::span<float>();
}

void VirtualCompute::end_tied_gradient() {
  if (tied_ != nullptr) {
    tied_->fill_down_to(0, noise_, static_cast<std::uint64_t>(position_.step));
  }
}

std::vector<LayerNorm2> VirtualCompute::layer_norms() {
  std::vector<LayerNorm2> norms;
  for (const auto& chunk : chunks_) {
    if (chunk == nullptr || !chunk->counts) continue;
    for (int layer = chunk->first_layer; layer < chunk->end_layer; ++layer) {
      norms.push_back({layer, 0});
    }
  }
  return norms;
}

std::uint64_t VirtualCompute::copy_hash(const CopyGroup& /*group*/) {
  return 0;
}

void VirtualCompute::update(const StepFactors& /*factors*/, const GradientScales& /*scales*/) {
  clock_.begin();
  double seconds = 0;
  for (const auto& chunk : chunks_) {
    if (chunk == nullptr) continue;
    seconds += cost_.optimizer_s(kSlot, chunk->first_layer, chunk->end_layer);
  }
  pass(seconds);
}

void VirtualCompute::clear_gradients() {}

}  // namespace motley
