// ModelSizes: how many values a model's layers store, sum over ranks and hand to each other. The
// cost model and the counts of bytes (partitioner/cost/step_bytes.h) take them from here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/boundary_size.h"
#include "models/spec/model_spec.h"

namespace motley {

class ModelSizes {
 public:
  explicit ModelSizes(const ModelSpec& model);

  [[nodiscard]] int layer_count() const { return static_cast<int>(outputs_.size()); }

  // What crosses the boundary after the layer for one micro-batch.
  [[nodiscard]] BoundarySize boundary(int layer, int micro_batch) const;

  // The targets of one micro-batch, from the rank that loads to the rank of the loss.
  [[nodiscard]] std::int64_t targets(int micro_batch) const;

  // Of what layers [first, last) each keep of a micro-batch, what two of them keep in the same
  // memory: one that it hands on, and the next one as what it got.
  [[nodiscard]] std::int64_t kept_twice_bytes(int first, int last, int micro_batch) const;

  // What the data of the next micro-batch takes where layers [first, last) begin or end the model:
  // its numbers and the tensor that is made of them.
  [[nodiscard]] std::int64_t sample_bytes(int first, int last, int micro_batch) const;

  // The parameters that a rank with layers [first, last) stores and updates.
  [[nodiscard]] std::int64_t updated_parameters(int first, int last) const;

  // Of these, the ones that the optimizer keeps moments of: all but statistics.
  [[nodiscard]] std::int64_t trained_parameters(int first, int last) const;

  // What a process with layers [first, last) holds and nothing changes, in bytes: a constant that
  // several of them name is there once.
  [[nodiscard]] std::int64_t constant_bytes(int first, int last) const;

  // The parameters that the replicas of layers [first, last) sum: all but a tied one.
  [[nodiscard]] std::int64_t summed_parameters(int first, int last) const;

  // In how many equal pieces their gradient is taken to become final in a backward: one for each
  // layer that has such parameters, at least one and at most four.
  [[nodiscard]] int sum_pieces(int first, int last) const;

  // The parameters that all ranks with a use of them sum besides; 0 when nothing is tied.
  [[nodiscard]] std::int64_t tied_parameters() const { return tied_ ? tied_->parameters : 0; }

  // How many of the two uses of the tied parameter layers [first, last) hold.
  [[nodiscard]] int tied_uses(int first, int last) const;

  // From now on every use of a tied parameter counts as one of its own.
  void untie() { tied_.reset(); }

 private:
  void add_constants(const ModelSpec& model);

  struct Tied {
    int owner_layer = 0;
    int user_layer = 0;
    std::int64_t parameters = 0;
  };

  // Constants that the same layers name, if more than one does.
  struct SharedConstants {
    std::vector<int> layers;  // ascending
    std::int64_t bytes = 0;
  };

  std::int64_t tokens_per_sample_;
  std::int64_t input_bytes_;                     // of one sample
  std::int64_t target_bytes_;                    // of its target
  std::vector<BoundarySize> outputs_;            // [layer] of one sample
  std::vector<std::int64_t> kept_twice_before_;  // [layer] floats of boundaries behind earlier ones
  std::vector<std::int64_t> stored_before_;      // [layer] parameters without tied uses
  std::vector<std::int64_t> statistics_before_;  // [layer] of these
  std::vector<std::int64_t> constants_before_;   // [layer] bytes that no other layer names
  std::vector<SharedConstants> shared_constants_;
  std::optional<Tied> tied_;
};

}  // namespace motley
