#include "partitioner/cost/model_sizes.h"

#include <algorithm>

namespace motley {
namespace {

bool lies_in(int layer, int first, int last) {
  return first <= layer && layer < last;
}

}  // namespace

ModelSizes::ModelSizes(const ModelSpec& model) : tokens_per_sample_(model.tokens_per_sample) {
  stored_before_.push_back(0);
  for (const LayerSpec& layer : model.layers) {
    output_floats_.push_back(layer.output_floats_per_sample());
    std::int64_t stored = 0;
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied_use) stored += parameter.count();
    }
    stored_before_.push_back(stored_before_.back() + stored);
  }
  if (const auto pair = model.tied_pair()) {
    const auto& uses = model.layers[static_cast<std::size_t>(pair->user_layer)].parameters;
    const auto use = std::ranges::find(uses, pair->parameter, &ParameterSpec::name);
    tied_ = Tied{pair->owner_layer, pair->user_layer, use == uses.end() ? 0 : use->count()};
  }
}

std::int64_t ModelSizes::boundary_floats(int layer, int micro_batch) const {
  return output_floats_[static_cast<std::size_t>(layer)] * micro_batch;
}

std::int64_t ModelSizes::targets(int micro_batch) const {
  return tokens_per_sample_ * micro_batch;
}

std::int64_t ModelSizes::updated_parameters(int first, int last) const {
  const std::int64_t stored = stored_before_[static_cast<std::size_t>(last)] -
                              stored_before_[static_cast<std::size_t>(first)];
  // A rank that has only the use keeps and updates a copy.
  const bool copies =
      tied_ && lies_in(tied_->user_layer, first, last) && !lies_in(tied_->owner_layer, first, last);
  return stored + (copies ? tied_->parameters : 0);
}

std::int64_t ModelSizes::summed_parameters(int first, int last) const {
  return updated_parameters(first, last) - (tied_uses(first, last) > 0 ? tied_->parameters : 0);
}

int ModelSizes::sum_pieces(int first, int last) const {
  constexpr int kMost = 4;
  int pieces = 0;
  for (int layer = first; layer < last && pieces < kMost; ++layer) {
    if (summed_parameters(layer, layer + 1) > 0) ++pieces;
  }
  return std::max(pieces, 1);
}

int ModelSizes::tied_uses(int first, int last) const {
  if (!tied_) return 0;
  return (lies_in(tied_->owner_layer, first, last) ? 1 : 0) +
         (lies_in(tied_->user_layer, first, last) ? 1 : 0);
}

}  // namespace motley
