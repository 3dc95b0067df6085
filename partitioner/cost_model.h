// CostModel: seconds and bytes of everything a plan can do, from profiles and links.
// The formulae are written down in docs/algorithms.md.
#pragma once

#include <cstdint>
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
  [[nodiscard]] static Result<CostModel> make(const ModelSpec& model, const Cluster& cluster,
                                              const Profile& profile, int default_threads);

  [[nodiscard]] const std::vector<DeviceSlot>& slots() const { return slots_; }
  [[nodiscard]] int layer_count() const { return layer_count_; }

  // Of layers [first, last) for one micro-batch of that many samples.
  [[nodiscard]] double forward_s(int slot, int first, int last, int micro_batch) const;
  [[nodiscard]] double backward_s(int slot, int first, int last, int micro_batch) const;
  // Of the update of their parameters.
  [[nodiscard]] double optimizer_s(int slot, int first, int last) const;
  // Of moving what crosses the boundary after layer `layer` (or a gradient back) between slots.
  [[nodiscard]] double transfer_s(int from_slot, int to_slot, int layer, int micro_batch,
                                  double bytes_per_float) const;
  [[nodiscard]] double message_s(int from_slot, int to_slot, double bytes) const;
  [[nodiscard]] std::int64_t boundary_bytes(int layer, int micro_batch,
                                            double bytes_per_float) const;
  // Peak of a process that holds [first, last) with that many micro-batches between forward and
  // backward: baseline, parameters, gradients, moments, saved activations, boundary buffers,
  // workspace.
  [[nodiscard]] std::int64_t memory_bytes(int slot, int first, int last, int micro_batch,
                                          int in_flight) const;

 private:
  CostModel() = default;

  struct Times {
    std::vector<double> forward_prefix_s;   // [layer + 1]
    std::vector<double> backward_prefix_s;  // [layer + 1]
  };

  int layer_count_ = 0;
  ModelSpec model_;
  Cluster cluster_;
  Profile profile_;
  std::vector<DeviceSlot> slots_;
};

}  // namespace motley
