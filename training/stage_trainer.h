// StageTrainer: the worker's StageCompute, with the layers of models/layers. It owns the memory of
// parameters and gradients; StageState initializes, updates and saves them.
//
// Nothing here waits for a device in the middle of a batch; loss() reads the loss once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/source.h"
#include "models/device/compute_device.h"
#include "models/device/device_copies.h"
#include "models/layers/layer.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/stage_compute.h"
#include "plan/plan.h"
#include "run_config/config.h"
#include "training/boundary_tensors.h"
#include "training/stage_state.h"
#include "training/vote/batch_loss.h"

namespace motley {

struct TrainedChunk;

class StageTrainer final : public StageCompute {
 public:
  // Opens the data (on the ranks of chunk 0) and builds the chunks of rank `self` on `device`, with
  // parameters set to 0. `work` counts the bytes of the data. kConfig, as ParameterRules::make().
  // REQUIRES: the plan is one of the model.
  [[nodiscard]] static Result<std::unique_ptr<StageTrainer>> make(const Config& config,
                                                                  const Plan& plan,
                                                                  Rank self,
                                                                  const ModelSpec& model,
                                                                  ProgressCounter& work,
                                                                  const ComputeDevice& device = {});
  ~StageTrainer() override;

  void begin(const BatchPosition& position) override;
  std::span<const std::int32_t> load(MicroId micro) override;
  std::span<std::int32_t> targets_buffer(MicroId micro) override;
  BoundarySize boundary_size(ChunkId chunk) const override;
  BoundaryBuffer receive_buffer(const Value& value) override;
  OwnedBoundary to_host(OwnedBoundary made) override;
  std::optional<OwnedBytes> message_to_host(const OwnedBoundary& made,
                                            const BoundaryMessage& message) override;
  std::optional<std::span<std::byte>> message_buffer(const Value& value,
                                                     const BoundaryMessage& message) override;
  void hand_over_locally(const Value& value, OwnedBoundary made) override;
  OwnedBoundary forward(ChunkId chunk, MicroId micro) override;
  OwnedBoundary backward(ChunkId chunk,
                         MicroId micro,
                         BackwardPart part,
                         const OnReady& on_ready) override;

  // Views into the chunks' memory, in their order.
  [[nodiscard]] const std::vector<HeldChunk>& held() const { return held_; }

  // Memory for a StageState of held(). The trainer must outlive it.
  [[nodiscard]] std::unique_ptr<StateMemory> make_memory();

  // The loss of the batch so far; on a device this waits for it.
  [[nodiscard]] BatchLoss loss();

  // nullptr on ranks without the data.
  [[nodiscard]] const Source* source() const { return source_.get(); }

 private:
  StageTrainer(const Config& config,
               const Plan& plan,
               Rank self,
               const ModelSpec& model,
               const ParameterRules& rules,
               const ComputeDevice& device);

  [[nodiscard]] TrainedChunk& chunk_at(ChunkId chunk);
  [[nodiscard]] bool is_last(ChunkId chunk) const;
  [[nodiscard]] MicroContext context(MicroId micro) const;
  [[nodiscard]] std::size_t targets_count() const;
  // The last layer of the chunk, before the boundary to the next one.
  [[nodiscard]] const LayerSpec& last_layer(ChunkId chunk) const;
  [[nodiscard]] BoundaryLayout layout_of(const Value& value) const;
  void add_loss(TrainedChunk& chunk, MicroId micro);
  // The gradient of the input, if the part computes one.
  [[nodiscard]] at::Tensor backward_part(TrainedChunk& here,
                                         ChunkId chunk,
                                         MicroId micro,
                                         BackwardPart part);

  const Config config_;
  const ModelSpec model_;
  const std::vector<ChunkPlan> plans_;  // [ChunkId]
  const int micro_batch_;
  std::unique_ptr<const Source> source_;
  BoundaryTensors tensors_;
  std::vector<std::unique_ptr<TrainedChunk>>
      chunks_;  // [ChunkId]; nullptr if another rank holds it
  std::vector<HeldChunk> held_;
  std::map<MicroId, std::vector<std::int32_t>> targets_;
  BatchPosition position_;
  at::Tensor loss_totals_;  // sums over the batch so far; undefined before its first loss
  std::optional<DeviceCopies::Download> loss_download_;
};

}  // namespace motley
