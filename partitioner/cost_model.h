// CostModel: seconds and bytes of everything a plan can do, from profiles and links.
// The formulae are written down in docs/algorithms.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model_spec.h"
#include "partitioner/cluster.h"
#include "partitioner/profile.h"

namespace motley {

// One place where a stage could run.
struct DeviceSlot {
  std::string machine;
  std::string device;
  int threads = 1;
  std::int64_t memory_bytes = 0;  // limit for its process
};

class CostModel {
 public:
  // kConfig when the cluster names a device that the profile lacks, or a profile lacks a layer.
  // moments_per_parameter: floats that the optimizer keeps for each parameter.
  [[nodiscard]] static Result<CostModel> make(const ModelSpec& model,
                                              const Cluster& cluster,
                                              const Profile& profile,
                                              int default_threads,
                                              int moments_per_parameter = 2);

  [[nodiscard]] const std::vector<DeviceSlot>& slots() const { return slots_; }

  [[nodiscard]] int layer_count() const { return static_cast<int>(layers_.size()); }

  // One layer at any micro-batch size; the sums below are over these.
  [[nodiscard]] LayerSample layer(int slot, int layer, int micro_batch) const;

  // Of layers [first, last) for one micro-batch of that many samples.
  [[nodiscard]] double forward_s(int slot, int first, int last, int micro_batch) const;
  [[nodiscard]] double backward_s(int slot, int first, int last, int micro_batch) const;
  // Of the update of their parameters.
  [[nodiscard]] double optimizer_s(int slot, int first, int last) const;
  // Of moving what crosses the boundary after layer `layer` (or a gradient back) between slots.
  [[nodiscard]] double transfer_s(
      int from_slot, int to_slot, int layer, int micro_batch, double bytes_per_float) const;
  [[nodiscard]] double message_s(int from_slot, int to_slot, double bytes) const;
  [[nodiscard]] LinkSpeed link(int from_slot, int to_slot) const;
  [[nodiscard]] std::int64_t boundary_bytes(int layer,
                                            int micro_batch,
                                            double bytes_per_float) const;
  // Of the targets of one micro-batch, from the rank that loads to the rank of the loss.
  [[nodiscard]] std::int64_t target_bytes(int micro_batch) const;

  // Of the gradient that the two ranks exchange when tied parameters lie on both; 0 without any.
  [[nodiscard]] std::int64_t tied_bytes() const { return tied_ ? tied_->bytes : 0; }

  // Peak of a process that holds [first, last) with that many micro-batches between forward and
  // backward: baseline, parameters, gradients, moments, saved activations, boundary buffers,
  // workspace.
  [[nodiscard]] std::int64_t memory_bytes(
      int slot, int first, int last, int micro_batch, int in_flight) const;

 private:
  CostModel() = default;

  struct LayerCost {
    std::size_t kind = 0;                // index into the slots' samples
    std::int64_t stored_parameters = 0;  // without tied uses
    std::int64_t output_floats = 0;      // of one sample
  };

  struct SlotCost {
    std::int64_t baseline_bytes = 0;
    double optimizer_s_per_parameter = 0;
    std::vector<std::vector<LayerSample>> samples;  // [kind]
  };

  struct Tied {
    int owner_layer = 0;
    int user_layer = 0;
    std::int64_t parameters = 0;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] static bool holds(int first, int last, int layer);
  // Of layers [first, last), as one rank stores and updates them.
  [[nodiscard]] std::int64_t updated_parameters(int first, int last) const;

  std::vector<DeviceSlot> slots_;
  std::vector<SlotCost> slot_costs_;  // [slot]
  std::vector<LinkSpeed> links_;      // [from slot * slots + to slot]
  std::vector<LayerCost> layers_;     // [layer]
  std::optional<Tied> tied_;
  std::int64_t tokens_per_sample_ = 0;
  int moments_per_parameter_ = 2;
};

}  // namespace motley
