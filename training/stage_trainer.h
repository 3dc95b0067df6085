// StageTrainer: what a rank computes, with torch layers: the worker's StageCompute.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "data/source.h"
#include "models/layers/layer.h"
#include "models/spec/model_spec.h"
#include "protocol/protocol.h"
#include "training/stage_state.h"
#include "training/trained_stage.h"
#include "training/vote.h"

namespace motley {

class StageTrainer : public TrainedStage {
 public:
  // Opens the data (on the rank of chunk 0), builds the chunks of this rank and fills their
  // parameters: from job.resume_from, else from model.init_from, else by seed. `work` counts the
  // bytes of them.
  [[nodiscard]] static Result<std::unique_ptr<StageTrainer>> make(const Job& job,
                                                                  const ModelSpec& model,
                                                                  WorkCounter& work);
  ~StageTrainer() override;

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

  [[nodiscard]] const StageState& state() const { return *state_; }

  void clear_gradients() { state_->clear_gradients(); }

  // nullptr on ranks without the data.
  [[nodiscard]] const Source* source() const { return source_.get(); }

 private:
  struct Chunk;

  StageTrainer(const Job& job, const ModelSpec& model);

  Result<void> fill_parameters(const Job& job, WorkCounter& work);
  [[nodiscard]] Chunk& chunk_at(ChunkId chunk);
  [[nodiscard]] const Chunk& chunk_at(ChunkId chunk) const;
  [[nodiscard]] bool is_last(ChunkId chunk) const;
  [[nodiscard]] MicroContext context(MicroId micro) const;
  void add_loss(Chunk& chunk, MicroId micro, const MicroContext& context);

  const Config config_;
  const ModelSpec model_;
  const int micro_batch_;
  const int chunk_count_;
  std::unique_ptr<const Source> source_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // [ChunkId]; null where another rank holds it
  std::unique_ptr<StageState> state_;

  BatchPosition position_;
  std::map<MicroId, std::vector<std::int32_t>> targets_;  // until the last chunk's forward
  Vote vote_;                                             // loss and tokens so far in this batch
  Tally tally_;
  StepOutcome outcome_;
  CheckpointState progress_;
};

}  // namespace motley
