#include "partitioner/cost/model_sizes.h"

#include <algorithm>
#include <map>
#include <string>

namespace motley {
namespace {

bool lies_in(int layer, int first, int last) {
  return first <= layer && layer < last;
}

// As loaded, four bytes a number, and as a tensor. Scalars are negligible.
std::int64_t bytes_of(const TensorSpec& sample) {
  constexpr std::int64_t kNumberBytes = 4;
  return sample.shape.empty() ? 0 : kNumberBytes * sample.count() + sample.bytes();
}

std::int64_t bytes_of(const std::vector<SampleInput>& inputs) {
  std::int64_t bytes = 0;
  for (const SampleInput& input : inputs) bytes += bytes_of(input.tensor);
  return bytes;
}

}  // namespace

ModelSizes::ModelSizes(const ModelSpec& model)
    : tokens_per_sample_(model.tokens_per_sample),
      input_bytes_(bytes_of(model.sample.inputs)),
      target_bytes_(bytes_of(model.sample.target)) {
  stored_before_.push_back(0);
  statistics_before_.push_back(0);
  saved_twice_before_.push_back(0);
  for (const LayerSpec& layer : model.layers) {
    outputs_.push_back(layer.boundary(1));
    std::int64_t stored = 0;
    std::int64_t statistics = 0;
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied_use) stored += parameter.count();
      if (parameter.statistic_momentum) statistics += parameter.count();
    }
    stored_before_.push_back(stored_before_.back() + stored);
    statistics_before_.push_back(statistics_before_.back() + statistics);
    const std::size_t next = outputs_.size();
    const bool is_twice =
        layer.keeps_output && next < model.layers.size() && model.layers[next].keeps_input;
    saved_twice_before_.push_back(saved_twice_before_.back() +
                                  (is_twice ? outputs_.back().floats : 0));
  }
  add_constants(model);
  if (const auto pair = model.tied_pair()) {
    const auto& uses = model.layers[static_cast<std::size_t>(pair->user_layer)].parameters;
    const auto use = std::ranges::find(uses, pair->parameter, &ParameterSpec::name);
    tied_ = Tied{pair->owner_layer, pair->user_layer, use == uses.end() ? 0 : use->count()};
  }
}

void ModelSizes::add_constants(const ModelSpec& model) {
  std::map<std::string, SharedConstants> uses;  // by name
  for (int layer = 0; layer < layer_count(); ++layer) {
    for (const ConstantSpec& constant : model.layers[static_cast<std::size_t>(layer)].constants) {
      SharedConstants& use = uses[constant.name];
      use.bytes = constant.bytes;
      if (use.layers.empty() || use.layers.back() != layer) use.layers.push_back(layer);
    }
  }
  std::vector<std::int64_t> own(static_cast<std::size_t>(layer_count()));  // [layer]
  std::map<std::vector<int>, std::int64_t> shared;                         // [layers]
  for (const auto& [name, use] : uses) {
    if (use.layers.size() == 1) {
      own[static_cast<std::size_t>(use.layers.front())] += use.bytes;
    } else {
      shared[use.layers] += use.bytes;
    }
  }
  constants_before_.push_back(0);
  for (const std::int64_t bytes : own)
    constants_before_.push_back(constants_before_.back() + bytes);
  for (const auto& [layers, bytes] : shared) shared_constants_.push_back({layers, bytes});
}

BoundarySize ModelSizes::boundary(int layer, int micro_batch) const {
  const BoundarySize& sample = outputs_[static_cast<std::size_t>(layer)];
  return {sample.floats * micro_batch, sample.exact_bytes * micro_batch};
}

std::int64_t ModelSizes::saved_twice_bytes(int first, int last, int micro_batch) const {
  constexpr std::int64_t kFloatBytes = 4;
  return kFloatBytes * micro_batch *
         (saved_twice_before_[static_cast<std::size_t>(last) - 1] -
          saved_twice_before_[static_cast<std::size_t>(first)]);
}

std::int64_t ModelSizes::sample_bytes(int first, int last, int micro_batch) const {
  return micro_batch *
         ((first == 0 ? input_bytes_ : 0) + (last == layer_count() ? target_bytes_ : 0));
}

std::int64_t ModelSizes::targets(int micro_batch) const {
  return tokens_per_sample_ * micro_batch;
}

std::int64_t ModelSizes::updated_parameters(int first, int last) const {
  const std::int64_t stored = stored_before_[static_cast<std::size_t>(last)] -
                              stored_before_[static_cast<std::size_t>(first)];
  // A rank with only the use stores and updates a copy.
  const bool copies =
      tied_ && lies_in(tied_->user_layer, first, last) && !lies_in(tied_->owner_layer, first, last);
  return stored + (copies ? tied_->parameters : 0);
}

std::int64_t ModelSizes::trained_parameters(int first, int last) const {
  return updated_parameters(first, last) - (statistics_before_[static_cast<std::size_t>(last)] -
                                            statistics_before_[static_cast<std::size_t>(first)]);
}

std::int64_t ModelSizes::constant_bytes(int first, int last) const {
  std::int64_t bytes = constants_before_[static_cast<std::size_t>(last)] -
                       constants_before_[static_cast<std::size_t>(first)];
  for (const SharedConstants& shared : shared_constants_) {
    const auto use = std::ranges::lower_bound(shared.layers, first);
    if (use != shared.layers.end() && *use < last) bytes += shared.bytes;
  }
  return bytes;
}

std::int64_t ModelSizes::reduced_parameters(int first, int last) const {
  return updated_parameters(first, last) - (tied_uses(first, last) > 0 ? tied_->parameters : 0);
}

int ModelSizes::allreduce_pieces(int first, int last) const {
  constexpr int kMost = 4;
  int pieces = 0;
  for (int layer = first; layer < last && pieces < kMost; ++layer) {
    if (reduced_parameters(layer, layer + 1) > 0) ++pieces;
  }
  return std::max(pieces, 1);
}

int ModelSizes::tied_uses(int first, int last) const {
  if (!tied_) return 0;
  return (lies_in(tied_->owner_layer, first, last) ? 1 : 0) +
         (lies_in(tied_->user_layer, first, last) ? 1 : 0);
}

}  // namespace motley
