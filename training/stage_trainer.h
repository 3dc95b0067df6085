// StageTrainer: what a rank computes, with torch layers: the worker's StageCompute. Where its
// parameters come from and what becomes of them is StageState's, over memory that lies here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "data/source.h"
#include "job/config.h"
#include "models/layers/layer.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/stage_compute.h"
#include "plan/plan.h"
#include "training/stage_state.h"
#include "training/step_outcome.h"

namespace motley {

class StageTrainer final : public StageCompute {
 public:
  // Opens the data (on the rank of chunk 0) and builds the chunks of rank `self`, with parameters
  // that are 0. `work` counts the bytes of the data. REQUIRES: the plan is one of the model.
  [[nodiscard]] static Result<std::unique_ptr<StageTrainer>> make(
      const Config& config, const Plan& plan, Rank self, const ModelSpec& model, WorkCounter& work);
  ~StageTrainer() override;

  void begin(const BatchPosition& position) override;
  std::span<const std::int32_t> load(MicroId micro) override;
  std::span<std::int32_t> targets_room(MicroId micro) override;
  std::size_t boundary_floats(ChunkId chunk) const override;
  std::span<float> room(const Value& value) override;
  void hand(const Value& value, OwnedFloats floats) override;
  OwnedFloats forward(ChunkId chunk, MicroId micro) override;
  OwnedFloats backward(ChunkId chunk,
                       MicroId micro,
                       BackwardPart part,
                       const OnFinal& on_final) override;

  // Views into the chunks' memory, in their order.
  [[nodiscard]] const std::vector<HeldChunk>& held() const { return held_; }

  // Of the batch so far; stays where it is.
  [[nodiscard]] const BatchLoss& loss() const { return loss_; }

  // nullptr on ranks without the data.
  [[nodiscard]] const Source* source() const { return source_.get(); }

 private:
  struct Chunk;

  StageTrainer(const Config& config, const Plan& plan, Rank self, const ModelSpec& model);

  [[nodiscard]] Chunk& chunk_at(ChunkId chunk);
  [[nodiscard]] bool is_last(ChunkId chunk) const;
  [[nodiscard]] MicroContext context(MicroId micro) const;
  [[nodiscard]] std::size_t targets_count() const;
  // Of what crosses from `chunk` to the next one.
  [[nodiscard]] std::vector<std::int64_t> sizes_after(ChunkId chunk) const;
  [[nodiscard]] std::vector<std::int64_t> sizes_of(const Value& value) const;
  void add_loss(Chunk& chunk, MicroId micro);

  const Config config_;
  const ModelSpec model_;
  const std::vector<ChunkPlan> plans_;  // [ChunkId]
  const int micro_batch_;
  std::unique_ptr<const Source> source_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // [ChunkId]; null where another rank holds it
  std::vector<HeldChunk> held_;
  std::map<MicroId, std::vector<std::int32_t>> targets_;
  BatchPosition position_;
  BatchLoss loss_;
};

}  // namespace motley
