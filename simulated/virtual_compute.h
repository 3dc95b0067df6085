// VirtualCompute: the computation of a rank on a simulated device. It computes nothing, for as long
// as the device would compute.
//
// Each action waits the time that partitioner/cost/virtual_profile.h assigns it
// (simulated/device_clock.h describes the precision). Communication is real: activations and
// gradients have their true sizes and pass through the real codecs and all-reduces, with noise as
// values. Gradients become final layer by layer during the last backward. Parameters, optimizer
// state and saved activations do not exist, and gradients only if they are all-reduced. The loss is
// 0.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/virtual_profile.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "pipeline/execute/stage_rounds.h"
#include "plan/plan.h"
#include "run_config/config.h"
#include "simulated/device_clock.h"
#include "simulated/noise.h"
#include "simulated/virtual_values.h"
#include "training/optimizer/optimizer.h"
#include "training/vote/batch_loss.h"
#include "training/vote/optimized_state.h"

namespace motley {

// What a device's times and memory depend on in a training job; products are in fp32.
[[nodiscard]] VirtualJob virtual_job(const TrainConfig& train, const ModelSpec& model);

class VirtualCompute final : public StageCompute,
                             public StageGradients,
                             public OptimizedState,
                             public StageRounds {
 public:
  // For rank `self` of the plan, which must be a plan of the model.
  VirtualCompute(const TrainConfig& train,
                 const ModelSpec& model,
                 const Plan& plan,
                 Rank self,
                 const VirtualSpeed& speed,
                 std::unique_ptr<WaitTime> time);
  ~VirtualCompute() override;

  void begin(const BatchPosition& position) override;
  std::span<const std::int32_t> load(MicroId micro) override;
  std::span<std::int32_t> targets_buffer(MicroId micro) override;
  BoundarySize boundary_size(ChunkId chunk) const override;
  BoundaryBuffer receive_buffer(const Value& value) override;
  void hand_over_locally(const Value& value, OwnedBoundary made) override;
  OwnedBoundary forward(ChunkId chunk, MicroId micro) override;
  OwnedBoundary backward(ChunkId chunk,
                         MicroId micro,
                         BackwardPart part,
                         const OnReady& on_ready) override;

  std::span<float> gradients(ChunkId chunk) override;
  std::span<float> tied_gradient() override;
  void end_tied_gradient() override;

  // The noise that stands for gradients also stands for pseudo-gradients; with overlap, noise of
  // their own.
  void begin_round() override {}

  void offer() override;
  std::span<float> pseudo_gradients(ChunkId chunk) override;
  std::span<float> tied_pseudo_gradient() override;

  void adopt() override;

  // Parameters and moments.
  [[nodiscard]] int start_arrays() const override { return 1 + moments_per_parameter_; }

  void offer_start(int /*array*/) override {}

  void adopt_start(int /*array*/) override {}

  // Norms of 0 for the layers that a real device would report, and parameter hashes that are always
  // equal.
  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override;
  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& group) override;
  // Only waits.
  void update(const StepFactors& factors, const GradientScales& scales) override;
  void clear_gradients() override;

  // Of the batch so far; the reference stays valid.
  [[nodiscard]] const BatchLoss& loss() const { return loss_; }

 private:
  struct Chunk;

  [[nodiscard]] Chunk& chunk_at(ChunkId chunk);
  void pass(double seconds);
  // Of one layer: both parts of its backward, or only the weight part.
  [[nodiscard]] double layer_backward_s(int layer, bool input_part) const;
  void pass_weights(Chunk& chunk, bool input_part, const OnReady& on_ready);
  bool fill_piece();

  const int micro_batch_;
  const int moments_per_parameter_;
  const bool overlaps_rounds_;
  const CostModel cost_;  // with this device as its only slot
  DeviceClock clock_;
  const Noise noise_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // [ChunkId]; null if not on this rank
  std::unique_ptr<ReducedGradient> tied_;       // null unless shared with other ranks
  // While all-reduces of a round run, steps use the values above. Empty without overlap.
  std::map<ChunkId, ReducedGradient> pseudo_gradients_;
  ReducedGradient tied_pseudo_gradient_;
  std::vector<std::int32_t> targets_;
  std::vector<BoundarySize> boundaries_;  // [ChunkId], after the chunk
  BatchPosition position_;
  BatchLoss loss_;
};

}  // namespace motley
