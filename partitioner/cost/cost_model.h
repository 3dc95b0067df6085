// CostModel: seconds and bytes of everything in a plan, from profiles and links. Formulae:
// docs/algorithms.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wire_sizes.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/allreduce_time.h"
#include "partitioner/cost/model_sizes.h"
#include "partitioner/cost/resident_state.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

class Codec;

// A device on which a stage could run.
struct DeviceSlot {
  std::string machine;
  std::string device;
  int threads = 1;
  std::int64_t memory_bytes = 0;       // limit for its process
  double single_device_factor = 1;     // as in DeviceProfile
  std::string compute_dtype = "fp32";  // as in DeviceProfile
};

class CostModel {
 public:
  // kConfig if the cluster names a device that the profile lacks, or a profile lacks a layer or the
  // codec. gradient_codec: of all-reduces between machines.
  [[nodiscard]] static Result<CostModel> make(const ModelSpec& model,
                                              const Cluster& cluster,
                                              const Profile& profile,
                                              int default_threads,
                                              const ResidentState& process_state,
                                              const std::string& gradient_codec = "none");

  // Lowers the limit of every slot of the machine to that share of it. REQUIRES: 0 < share <= 1.
  void limit_memory(const std::string& machine, double share);

  [[nodiscard]] const std::vector<DeviceSlot>& slots() const { return slots_; }

  [[nodiscard]] int layer_count() const { return sizes_.layer_count(); }

  [[nodiscard]] const ModelSizes& sizes() const { return sizes_; }

  // Factor on the times of a plan on these slots, [Rank]: a single device does not share its
  // computer with the devices that were measured at the same time.
  [[nodiscard]] double single_device_factor_of(const std::vector<int>& slots) const {
    return slots.size() == 1 ? slots_[static_cast<std::size_t>(slots.front())].single_device_factor
                             : 1;
  }

  // Whether two slots have equal costs except for their links.
  [[nodiscard]] bool same_costs(int slot, int other) const;
  // kConfig if a slot's profile lacks the codec.
  [[nodiscard]] Result<void> check_codec(const std::string& codec) const;
  // kConfig if a slot's profile does not separate the two parts of a layer's backward.
  [[nodiscard]] Result<void> check_split() const;

  // One layer at any micro-batch size; the functions below add these up.
  [[nodiscard]] LayerSample layer(int slot, int layer, int micro_batch) const;

  // For layers [first, last) and one micro-batch of that many samples.
  [[nodiscard]] double forward_s(int slot, int first, int last, int micro_batch) const;
  // recompute: the forward runs again before the backward.
  [[nodiscard]] double backward_s(
      int slot, int first, int last, int micro_batch, bool recompute = false) const;
  // The part of it until the gradient of the input is ready; all of it if the profile does not
  // separate them.
  [[nodiscard]] double backward_input_s(
      int slot, int first, int last, int micro_batch, bool recompute = false) const;
  // The rest of backward if it is delayed. It takes longer than the rest of backward_s, because its
  // inputs have left the caches.
  [[nodiscard]] double backward_weight_s(int slot, int first, int last, int micro_batch) const;
  // The update of their parameters.
  [[nodiscard]] double optimizer_s(int slot, int first, int last) const;

  // Processor time of the codec at one end of a message of floats. REQUIRES:
  // check_codec(codec).ok()
  [[nodiscard]] double encode_s(int slot, double floats, const std::string& codec) const;
  [[nodiscard]] double decode_s(int slot, double floats, const std::string& codec) const;
  // The same for an activation or a gradient. Exact bytes cost what fp32 costs without a codec.
  [[nodiscard]] double encode_s(int slot, const BoundarySize& size, const std::string& codec) const;
  [[nodiscard]] double decode_s(int slot, const BoundarySize& size, const std::string& codec) const;
  [[nodiscard]] double message_s(int slot) const;  // sending or receiving any message
  // Whether the cost of passing values to another rank of the machine through shared memory was
  // measured.
  [[nodiscard]] bool shares_memory(int slot) const;
  // Passing values of an all-reduce to another rank of the machine, and receiving them: through
  // shared memory if measured, else by messages of fp32.
  [[nodiscard]] double hand_s(int slot, double floats) const;
  [[nodiscard]] double take_s(int slot, double floats) const;
  // Bytes of that many floats behind a frame's header: exact if the codec's size depends only on
  // their number, otherwise as measured in the profile.
  [[nodiscard]] double payload_bytes(int slot, double floats, const std::string& codec) const;
  // Bytes of the frame of an activation or a gradient, with its header.
  [[nodiscard]] double frame_bytes(int slot,
                                   const BoundarySize& size,
                                   const std::string& codec) const;

  // Whether the slot encodes, decodes and handles messages asynchronously, on threads of their own
  // (pipeline/execute/executor.h).
  [[nodiscard]] bool overlaps_codecs(int slot) const;
  // Time on the compute stream for an activation and its gradient over a boundary. The slot before
  // it encodes the activation and decodes the gradient; the slot behind it does the reverse. 0 if
  // the slot runs codecs asynchronously.
  [[nodiscard]] double boundary_before_s(int slot,
                                         const BoundarySize& size,
                                         const std::string& codec) const;
  [[nodiscard]] double boundary_behind_s(int slot,
                                         const BoundarySize& size,
                                         const std::string& codec) const;
  // The time that asynchronous codecs at either end add to the transfer of a message between them.
  [[nodiscard]] double overlapped_s(int from_slot,
                                    int to_slot,
                                    const BoundarySize& size,
                                    const std::string& codec) const;

  // The size of the boundary after the layer.
  [[nodiscard]] BoundarySize boundary(int layer, int micro_batch) const {
    return sizes_.boundary(layer, micro_batch);
  }

  [[nodiscard]] const LinkSpeed& link(int from_slot, int to_slot) const {
    return links_[static_cast<std::size_t>(from_slot) * slots_.size() +
                  static_cast<std::size_t>(to_slot)];
  }

  [[nodiscard]] bool same_machine(int slot, int other) const {
    return machine_of(slot) == machine_of(other);
  }

  // A machine's network as a whole, as fast as its fastest link in that direction.
  struct MachineNetwork {
    double up_bytes_per_s = 0;
    double down_bytes_per_s = 0;
    std::string medium;  // plan/cluster.h; "" = full duplex
  };

  // [machine], numbered as the cluster lists them.
  [[nodiscard]] const std::vector<MachineNetwork>& networks() const { return networks_; }

  [[nodiscard]] std::size_t machine_of(int slot) const {
    return machines_[static_cast<std::size_t>(slot)];
  }

  // Whether the two directions between them share the medium, so that messages alternate.
  [[nodiscard]] bool is_half_duplex(int slot, int other) const;

  [[nodiscard]] double transfer_s(int from_slot, int to_slot, double bytes) const;
  // The bandwidth between the slot's machine and the machine of `slots` to which it has the fastest
  // link, in bytes per second of the slower direction; 0 if there is no other machine.
  [[nodiscard]] double machine_bandwidth(int slot, std::span<const int> slots) const;

  [[nodiscard]] const std::string& gradient_codec() const { return gradient_codec_; }

  // The all-reduce of that many gradients over the ranks on those slots, by the messages of
  // pipeline/schedule/allreduce_plan.h; 0 for one. Without the time of codecs.
  [[nodiscard]] AllreduceTime allreduce_time(std::span<const int> slots,
                                             std::int64_t parameters) const;

  // The error-feedback state of a rank for that many values that it encodes for other machines.
  [[nodiscard]] std::int64_t encoder_bytes(std::int64_t encoded_values) const {
    return encoded_values * feedback_per_encoded_ * static_cast<std::int64_t>(sizeof(float));
  }

  // The same for each of those slots that all-reduce the gradients of layers [first, last), with
  // the allocator's overhead; 0 on one machine.
  [[nodiscard]] std::int64_t encoder_bytes(std::span<const int> slots,
                                           int slot,
                                           int first,
                                           int last) const;

  // The same model with every use of a tied parameter as an independent parameter.
  [[nodiscard]] CostModel without_tied() const;

  // Peak of a process that holds [first, last) with that many micro-batches between forward and
  // backward: baseline, parameters, gradients, moments, saved activations, boundary buffers,
  // workspace. With recompute only one micro-batch has its activations saved at a time.
  // queued_weights: further micro-batches between the two parts of backward.
  [[nodiscard]] std::int64_t memory_bytes(int slot,
                                          int first,
                                          int last,
                                          int micro_batch,
                                          int in_flight,
                                          bool recompute = false,
                                          int queued_weights = 0) const;

  // The components of memory_bytes that add up over layers, for tables over many ranges.
  struct MemoryParts {
    std::int64_t baseline_bytes = 0;  // of the process without any layer
    std::int64_t constant_bytes = 0;  // frozen weights, masks, tables
    std::int64_t value_bytes = 0;     // parameters and statistics, with their rounded copies
    std::int64_t gradient_bytes = 0;
    std::int64_t moment_bytes = 0;
    std::int64_t data_bytes = 0;       // resident data, and the loaded micro-batches
    std::int64_t allreduce_bytes = 0;  // of a tied gradient's all-reduce: in flight
    std::int64_t boundary_bytes = 0;   // of one micro-batch: input and output
    std::int64_t saved_bytes = 0;      // of one micro-batch
    std::int64_t queued_bytes = 0;     // of one micro-batch between the two parts of backward
    std::int64_t workspace_bytes = 0;  // the largest of one layer

    // The allocator's overhead over the requested bytes, from measured runs (docs/planning.md).
    [[nodiscard]] static std::int64_t allocator_bytes(std::int64_t needed) {
      constexpr std::int64_t kOverheadPercent = 4;
      return needed * kOverheadPercent / 100;
    }

    [[nodiscard]] static std::int64_t resident(std::int64_t needed) {
      return needed + allocator_bytes(needed);
    }

    // What the process holds for its layers throughout a step.
    [[nodiscard]] std::int64_t fixed_bytes() const {
      return constant_bytes + value_bytes + gradient_bytes + moment_bytes + allreduce_bytes +
             data_bytes;
    }

    [[nodiscard]] std::int64_t total(int in_flight, bool recompute, int queued_weights = 0) const {
      return baseline_bytes + resident(fixed_bytes() + (in_flight + 2) * boundary_bytes +
                                       (recompute ? 1 : in_flight) * saved_bytes +
                                       queued_weights * queued_bytes + workspace_bytes);
    }
  };

  [[nodiscard]] MemoryParts memory_parts(int slot, int first, int last, int micro_batch) const;
  // Without saved, queued and workspace bytes, which depend on the individual layers.
  [[nodiscard]] MemoryParts fixed_memory(int slot, int first, int last, int micro_batch) const;

 private:
  explicit CostModel(const ModelSpec& model) : sizes_(model) {}

  void find_fixed_sizes();
  void find_networks(const Cluster& cluster);

  struct SlotCost {
    std::int64_t baseline_bytes = 0;
    std::int64_t rounded_bytes_per_parameter = 0;
    double optimizer_s_per_parameter = 0;
    double message_s = 0;
    double shared_s_per_float = 0;
    std::map<std::string, CodecSample> codecs;
    std::vector<std::vector<LayerSample>> samples;  // [kind]

    friend bool operator==(const SlotCost&, const SlotCost&) = default;
  };

  [[nodiscard]] const CodecSample& codec(int slot, const std::string& name) const;

  ModelSizes sizes_;
  std::vector<DeviceSlot> slots_;
  std::vector<std::size_t> machines_;     // [slot] index of its machine
  std::vector<SlotCost> slot_costs_;      // [slot]
  std::vector<MachineNetwork> networks_;  // [machine]
  std::vector<LinkSpeed> links_;          // [from slot * slots + to slot]
  std::vector<std::size_t> kinds_;        // [layer] index into the slots' samples
  int moments_per_parameter_ = 0;
  std::int64_t data_bytes_ = 0;
  int feedback_per_encoded_ = 0;
  std::string gradient_codec_;
  std::vector<double> gradient_bytes_per_float_;  // [slot]
  // The codecs that the profiles name and whose size depends only on the number of values.
  std::map<std::string, std::shared_ptr<const Codec>> fixed_sizes_;
};

// The same costs with each of several codecs of gradients.
using CostModels = std::vector<const CostModel*>;

}  // namespace motley
