// VirtualCompute: what a rank on a virtual device computes: nothing, for as long as the device
// would.
//
// Each action waits the time that partitioner/cost/virtual_profile.h gives it
// (rehearsal/device_clock.h says how well). All else is real: activations and gradients have their
// true sizes and go through the real codecs and sums, which find noise in them; gradients become
// final layer by layer while the last backward is under way.
// Parameters, optimizer state and what layers keep for backward do not exist, and gradients only
// where ranks sum them. The loss is 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/virtual_profile.h"
#include "pipeline/execute/stage_compute.h"
#include "pipeline/execute/stage_gradients.h"
#include "plan/plan.h"
#include "rehearsal/device_clock.h"
#include "rehearsal/noise.h"
#include "rehearsal/virtual_values.h"
#include "training/optimizer/optimizer.h"
#include "training/vote/optimized_state.h"
#include "training/vote/step_outcome.h"

namespace motley {

// virtual_profile() of a device in a training job.
[[nodiscard]] DeviceProfile profile_in_job(const ModelSpec& model,
                                           const VirtualSpeed& speed,
                                           const TrainConfig& train,
                                           const std::vector<int>& sizes);

class VirtualCompute final : public StageCompute, public StageGradients, public OptimizedState {
 public:
  // Of rank `self` of the plan, which is one of the model.
  VirtualCompute(const TrainConfig& train,
                 const ModelSpec& model,
                 const Plan& plan,
                 Rank self,
                 const VirtualSpeed& speed,
                 std::unique_ptr<WaitTime> time);
  ~VirtualCompute() override;

  void begin(const BatchPosition& position) override;
  std::span<const std::int32_t> load(MicroId micro) override;
  std::span<std::int32_t> targets_room(MicroId micro) override;
  BoundarySize boundary_size(ChunkId chunk) const override;
  BoundaryRoom room(const Value& value) override;
  void hand(const Value& value, OwnedBoundary made) override;
  OwnedBoundary forward(ChunkId chunk, MicroId micro) override;
  OwnedBoundary backward(ChunkId chunk,
                         MicroId micro,
                         BackwardPart part,
                         const OnFinal& on_final) override;

  std::span<float> gradients(ChunkId chunk) override;
  std::span<float> tied_gradient() override;
  void end_tied_gradient() override;

  // Norms of 0 of what a real device would hold, and parameters that are always equal.
  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override;
  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& group) override;
  // Waits.
  void update(const StepFactors& factors, const GradientScales& scales) override;
  void clear_gradients() override;

  // Of the batch so far; stays where it is.
  [[nodiscard]] const BatchLoss& loss() const { return loss_; }

 private:
  struct Chunk;

  [[nodiscard]] Chunk& chunk_at(ChunkId chunk);
  void pass(double seconds);
  // Of one layer: both parts of its backward, or the weight part alone.
  [[nodiscard]] double layer_backward_s(int layer, bool input_part) const;
  void pass_weights(Chunk& chunk, bool input_part, const OnFinal& on_final);
  bool fill_piece();

  const int micro_batch_;
  const CostModel cost_;  // of one slot: this device
  DeviceClock clock_;
  const Noise noise_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // [ChunkId]; null where another rank holds it
  std::unique_ptr<SummedGradient> tied_;        // where other ranks have a use too
  std::vector<std::int32_t> targets_;
  std::vector<BoundarySize> boundaries_;  // [ChunkId], between it and the next
  BatchPosition position_;
  BatchLoss loss_;
};

}  // namespace motley
