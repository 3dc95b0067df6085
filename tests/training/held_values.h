// Memory for the parameters of a rank, as a chain of layers would hold it, for tests of operations
// on it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "training/stage_state.h"

namespace motley {

// By default every parameter has a separate chunk and layer, three different values, and gradients
// of 0.
class HeldValues {
 public:
  HeldParameter& add(ChunkId chunk, int layer, const std::string& name) {
    Memory& memory = memory_.emplace_back();
    HeldParameter parameter;
    parameter.layer = layer;
    parameter.spec.name = name;
    parameter.spec.shape = {static_cast<std::int64_t>(memory.values.size())};
    parameter.values = memory.values;
    parameter.gradients = memory.gradients;
    if (chunks_.empty() || chunks_.back().chunk != chunk) {
      chunks_.push_back({chunk, memory.gradients, {}, {}});
    }
    chunks_.back().parameters.push_back(parameter);
    return chunks_.back().parameters.back();
  }

  // Without rounds: first copies are counted, and their layers are those in the vote.
  [[nodiscard]] std::vector<HeldChunk> chunks() const {
    std::vector<HeldChunk> chunks = chunks_;
    for (HeldChunk& chunk : chunks) {
      std::vector<int>& voted = chunk.voted_layers;
      for (HeldParameter& parameter : chunk.parameters) {
        parameter.is_counted = parameter.is_first;
        const bool is_known = !voted.empty() && voted.back() == parameter.layer;
        if (parameter.is_first && !is_known) voted.push_back(parameter.layer);
      }
    }
    return chunks;
  }

  std::vector<float>& values(std::size_t parameter) { return memory_[parameter].values; }

  std::vector<float>& gradients(std::size_t parameter) { return memory_[parameter].gradients; }

 private:
  struct Memory {
    std::vector<float> values = {1, -2, 3};
    std::vector<float> gradients = {0, 0, 0};
  };

  std::deque<Memory> memory_;  // stable addresses
  std::vector<HeldChunk> chunks_;
};

inline TrainConfig plain_sgd() {
  TrainConfig train;
  train.optimizer = "sgd";
  train.lr = 0.5;
  train.momentum = 0;
  train.weight_decay = 0;
  train.warmup_steps = 0;
  train.schedule = "constant";
  train.clip = 0;
  train.global_batch = 4;
  train.steps = 1000;
  return train;
}

}  // namespace motley
