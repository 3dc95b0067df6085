// ModelSizes: how many values a model's layers store, all-reduce and pass to each other. Used by
// the cost model and the counts of bytes (partitioner/cost/step_bytes.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/wire_sizes.h"
#include "models/spec/model_spec.h"

namespace motley {

class ModelSizes {
 public:
  explicit ModelSizes(const ModelSpec& model);

  [[nodiscard]] int layer_count() const { return static_cast<int>(outputs_.size()); }

  // The size of the boundary after the layer for one micro-batch.
  [[nodiscard]] BoundarySize boundary(int layer, int micro_batch) const;

  // The targets of one micro-batch, from the rank that loads to the rank of the loss.
  [[nodiscard]] std::int64_t targets(int micro_batch) const;

  // The bytes that two of the layers [first, last) save for a micro-batch in the same memory: an
  // output of one that is saved as the input of the next.
  [[nodiscard]] std::int64_t saved_twice_bytes(int first, int last, int micro_batch) const;

  // The memory of the next micro-batch's data if layers [first, last) begin or end the model: its
  // numbers and the tensor made from them.
  [[nodiscard]] std::int64_t sample_bytes(int first, int last, int micro_batch) const;

  // The parameters that a rank with layers [first, last) stores and updates.
  [[nodiscard]] std::int64_t updated_parameters(int first, int last) const;

  // Of these, the ones with moments: all except statistics.
  [[nodiscard]] std::int64_t trained_parameters(int first, int last) const;

  // Bytes of the constants of a process with layers [first, last); a constant that several of them
  // use counts once.
  [[nodiscard]] std::int64_t constant_bytes(int first, int last) const;

  // The parameters that the replicas of layers [first, last) all-reduce: all except a tied one.
  [[nodiscard]] std::int64_t reduced_parameters(int first, int last) const;

  // The number of equal pieces in which their gradient becomes final in a backward: one for each
  // layer with such parameters, at least one and at most four.
  [[nodiscard]] int allreduce_pieces(int first, int last) const;

  // The parameters that all ranks with a use of them all-reduce in addition; 0 if nothing is tied.
  [[nodiscard]] std::int64_t tied_parameters() const { return tied_ ? tied_->parameters : 0; }

  // How many of the two uses of the tied parameter layers [first, last) hold.
  [[nodiscard]] int tied_uses(int first, int last) const;

  // From now on every use of a tied parameter counts as an independent parameter.
  void untie() { tied_.reset(); }

 private:
  void add_constants(const ModelSpec& model);

  struct Tied {
    int owner_layer = 0;
    int user_layer = 0;
    std::int64_t parameters = 0;
  };

  // Constants that the same layers use, if more than one does.
  struct SharedConstants {
    std::vector<int> layers;  // ascending
    std::int64_t bytes = 0;
  };

  std::int64_t tokens_per_sample_;
  std::int64_t input_bytes_;           // of one sample
  std::int64_t target_bytes_;          // of its target
  std::vector<BoundarySize> outputs_;  // [layer] boundary after it, of one sample
  std::vector<std::int64_t>
      saved_twice_before_;                       // [layer] floats that two earlier layers both save
  std::vector<std::int64_t> stored_before_;      // [layer] parameters without tied uses
  std::vector<std::int64_t> statistics_before_;  // [layer] of these
  std::vector<std::int64_t> constants_before_;   // [layer] bytes that no other layer uses
  std::vector<SharedConstants> shared_constants_;
  std::optional<Tied> tied_;
};

}  // namespace motley
