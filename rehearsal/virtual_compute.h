// VirtualCompute: what a rank on a virtual device computes: nothing, for as long as the device
// would.
//
// Each action waits the time that partitioner/cost/virtual_profile.h gives it
// (rehearsal/device_clock.h says how well). All else is real: activations and gradients have their
// true sizes and go through the real codecs and sums, which find noise in them; gradients become
// final layer by layer while the last backward is under way; ranks vote and count steps.
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
#include "plan/plan.h"
#include "rehearsal/device_clock.h"
#include "rehearsal/noise.h"
#include "rehearsal/virtual_values.h"
#include "training/trained_stage.h"
#include "training/vote.h"

namespace motley {

// What a training job means to a virtual device.
[[nodiscard]] VirtualJob virtual_job(const TrainConfig& train);

class VirtualCompute final : public TrainedStage {
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
  std::size_t input_floats(ChunkId chunk) const override;
  std::size_t output_floats(ChunkId chunk) const override;
  std::size_t targets_count() const override;
  std::span<float> input_room(ChunkId chunk, MicroId micro) override;
  void hand_input(ChunkId chunk, MicroId micro, OwnedFloats values) override;
  OwnedFloats forward(ChunkId chunk, MicroId micro) override;
  std::span<float> gradient_room(ChunkId chunk, MicroId micro) override;
  void hand_gradient(ChunkId chunk, MicroId micro, OwnedFloats values) override;
  OwnedFloats backward(ChunkId chunk, MicroId micro) override;
  OwnedFloats backward_input(ChunkId chunk, MicroId micro) override;
  void backward_weight(ChunkId chunk, MicroId micro) override;
  std::span<float> gradients(ChunkId chunk) override;
  void tell_final(ChunkId chunk, OnFinal on_final) override;
  std::span<float> tied_gradient() override;
  void end_tied_gradient() override;
  std::size_t vote_bytes_max() const override;
  std::vector<std::byte> vote() override;
  Result<void> count_votes(const std::vector<std::vector<std::byte>>& votes) override;
  bool step() override;

  const StepOutcome& outcome() const override { return outcome_; }

  const CheckpointState& progress() const override { return progress_; }

 private:
  struct Chunk;

  [[nodiscard]] Chunk& chunk_at(ChunkId chunk);
  [[nodiscard]] const Chunk& chunk_at(ChunkId chunk) const;
  void pass(double seconds);
  // Of one layer: both parts of its backward, or the weight part alone.
  [[nodiscard]] double layer_backward_s(int layer, bool input_part) const;
  void pass_weights(Chunk& chunk, bool input_part);
  bool fill_piece();

  const TrainConfig train_;
  const ModelSpec model_;
  const int micro_batch_;
  const CostModel cost_;  // of one slot: this device
  DeviceClock clock_;
  const Noise noise_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // [ChunkId]; null where another rank holds it
  std::unique_ptr<SummedGradient> tied_;        // where other ranks have a use too
  std::vector<std::int32_t> targets_;
  Vote vote_;
  Tally tally_;
  BatchPosition position_;
  StepOutcome outcome_;
  CheckpointState progress_;
};

}  // namespace motley
