// CostModel: seconds and bytes of everything a plan can do, from profiles and links.
// The formulae are written down in docs/algorithms.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/boundary_size.h"
#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/kept_state.h"
#include "partitioner/cost/model_sizes.h"
#include "partitioner/cost/sum_time.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

class Codec;

// One place where a stage could run.
struct DeviceSlot {
  std::string machine;
  std::string device;
  int threads = 1;
  std::int64_t memory_bytes = 0;  // limit for its process
  double alone_factor = 1;        // as in DeviceProfile
  std::string numbers = "fp32";   // as in DeviceProfile
};

class CostModel {
 public:
  // kConfig when the cluster names a device that the profile lacks, or a profile lacks a layer or
  // the codec. gradient_codec: of sums of gradients between machines.
  [[nodiscard]] static Result<CostModel> make(const ModelSpec& model,
                                              const Cluster& cluster,
                                              const Profile& profile,
                                              int default_threads,
                                              const KeptState& kept,
                                              const std::string& gradient_codec = "none");

  // Lowers the limit of every slot of the machine to that share of it. REQUIRES: 0 < share <= 1.
  void limit_memory(const std::string& machine, double share);

  [[nodiscard]] const std::vector<DeviceSlot>& slots() const { return slots_; }

  [[nodiscard]] int layer_count() const { return sizes_.layer_count(); }

  [[nodiscard]] const ModelSizes& sizes() const { return sizes_; }

  // What the times of a plan on these slots, [Rank], are to be multiplied by: a single device does
  // not share its computer with the others that it was measured beside.
  [[nodiscard]] double pace_of(const std::vector<int>& slots) const {
    return slots.size() == 1 ? slots_[static_cast<std::size_t>(slots.front())].alone_factor : 1;
  }

  // Whether two slots cost the same in all but their links.
  [[nodiscard]] bool same_costs(int slot, int other) const;
  // kConfig when a slot's profile lacks the codec.
  [[nodiscard]] Result<void> check_codec(const std::string& codec) const;
  // kConfig when a slot's profile does not tell the two parts of a layer's backward apart.
  [[nodiscard]] Result<void> check_split() const;

  // One layer at any micro-batch size; the sums below are over these.
  [[nodiscard]] LayerSample layer(int slot, int layer, int micro_batch) const;

  // Of layers [first, last) for one micro-batch of that many samples.
  [[nodiscard]] double forward_s(int slot, int first, int last, int micro_batch) const;
  // recompute: the forward runs again before the backward.
  [[nodiscard]] double backward_s(
      int slot, int first, int last, int micro_batch, bool recompute = false) const;
  // Of that, until the gradient of the input is there; all of it where the profile does not say.
  [[nodiscard]] double backward_input_s(
      int slot, int first, int last, int micro_batch, bool recompute = false) const;
  // Of the rest of backward where it is put off, which is longer than the rest of backward_s: what
  // it needs has left the caches.
  [[nodiscard]] double backward_weight_s(int slot, int first, int last, int micro_batch) const;
  // Of the update of their parameters.
  [[nodiscard]] double optimizer_s(int slot, int first, int last) const;

  // Of processor time at one end of a message of values. REQUIRES: check_codec(codec).ok()
  [[nodiscard]] double encode_s(int slot, double floats, const std::string& codec) const;
  [[nodiscard]] double decode_s(int slot, double floats, const std::string& codec) const;
  // The same of an activation or a gradient: exact bytes take what fp32 takes without a codec.
  [[nodiscard]] double encode_s(int slot, const BoundarySize& size, const std::string& codec) const;
  [[nodiscard]] double decode_s(int slot, const BoundarySize& size, const std::string& codec) const;
  [[nodiscard]] double message_s(int slot) const;  // sending or receiving any message
  // Whether it is measured what passing values to another rank of the machine through memory that
  // they share costs.
  [[nodiscard]] bool shares_memory(int slot) const;
  // Handing values of a sum to another rank of the machine, and taking them: through that memory,
  // else by messages of fp32.
  [[nodiscard]] double hand_s(int slot, double floats) const;
  [[nodiscard]] double take_s(int slot, double floats) const;
  // Of that many floats behind a frame's header: exact where the codec's size depends on nothing
  // else, otherwise as the profile measured it.
  [[nodiscard]] double payload_bytes(int slot, double floats, const std::string& codec) const;
  // Of an activation or a gradient, with the header.
  [[nodiscard]] double frame_bytes(int slot,
                                   const BoundarySize& size,
                                   const std::string& codec) const;

  // Whether the slot encodes, decodes and handles messages while it computes, on threads of their
  // own (pipeline/execute/executor.h).
  [[nodiscard]] bool codecs_beside(int slot) const;
  // What an activation and its gradient over a boundary take of the computing of a slot before it,
  // which encodes the one and decodes the other, or behind it; 0 where that goes on beside.
  [[nodiscard]] double crossing_before_s(int slot,
                                         const BoundarySize& size,
                                         const std::string& codec) const;
  [[nodiscard]] double crossing_behind_s(int slot,
                                         const BoundarySize& size,
                                         const std::string& codec) const;
  // What a message between them takes longer than its way because either has codecs beside.
  [[nodiscard]] double beside_s(int from_slot,
                                int to_slot,
                                const BoundarySize& size,
                                const std::string& codec) const;

  // What crosses the boundary after the layer.
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
    std::string medium;  // plan/cluster.h; "" = each direction has a way of its own
  };

  // [machine], numbered as the cluster lists them.
  [[nodiscard]] const std::vector<MachineNetwork>& networks() const { return networks_; }

  [[nodiscard]] std::size_t machine_of(int slot) const {
    return machines_[static_cast<std::size_t>(slot)];
  }

  // Whether what goes from one to the other and what comes back takes turns.
  [[nodiscard]] bool takes_turns(int slot, int other) const;

  [[nodiscard]] double transfer_s(int from_slot, int to_slot, double bytes) const;
  // Bytes per second of the slot's machine with that machine of `slots` to which it has the fastest
  // link, in the slower direction; 0 when there is no other.
  [[nodiscard]] double machine_bandwidth(int slot, std::span<const int> slots) const;

  [[nodiscard]] const std::string& gradient_codec() const { return gradient_codec_; }

  // Of summing so many gradients over the ranks on those slots, by the messages of
  // pipeline/schedule/allreduce_plan.h; 0 on one. Without the time of codecs.
  [[nodiscard]] SumTime sum_time(std::span<const int> slots, std::int64_t parameters) const;

  // What a rank keeps from step to step of so many values that it encodes for other machines.
  [[nodiscard]] std::int64_t encoder_bytes(std::int64_t encoded_values) const {
    return encoded_values * kept_per_encoded_ * static_cast<std::int64_t>(sizeof(float));
  }

  // The same of each of those slots that sum the gradients of layers [first, last), with what the
  // allocator holds beyond it; 0 on one machine.
  [[nodiscard]] std::int64_t encoder_bytes(std::span<const int> slots,
                                           int slot,
                                           int first,
                                           int last) const;

  // As if every use of a tied parameter were one of its own.
  [[nodiscard]] CostModel without_tied() const;

  // Peak of a process that holds [first, last) with that many micro-batches between forward and
  // backward: baseline, parameters, gradients, moments, saved activations, boundary buffers,
  // workspace. With recompute only one micro-batch has its activations saved at a time.
  // queued_weights: further micro-batches that stand between the two parts of backward.
  [[nodiscard]] std::int64_t memory_bytes(int slot,
                                          int first,
                                          int last,
                                          int micro_batch,
                                          int in_flight,
                                          bool recompute = false,
                                          int queued_weights = 0) const;

  // The parts of memory_bytes that layers add up to, for tables over many ranges.
  struct MemoryParts {
    std::int64_t baseline_bytes = 0;  // of the process without any layer
    std::int64_t constant_bytes = 0;  // frozen weights, masks, tables
    std::int64_t value_bytes = 0;     // parameters and statistics, with their rounded copies
    std::int64_t gradient_bytes = 0;
    std::int64_t moment_bytes = 0;
    std::int64_t data_bytes = 0;       // held of the data, and of the micro-batches that are loaded
    std::int64_t sum_bytes = 0;        // of a tied gradient's sum: what is under way
    std::int64_t boundary_bytes = 0;   // of one micro-batch: input and output
    std::int64_t saved_bytes = 0;      // of one micro-batch
    std::int64_t queued_bytes = 0;     // of one micro-batch between the two parts of backward
    std::int64_t workspace_bytes = 0;  // the most of one layer

    // What the allocator holds beyond what is needed, in measured runs (docs/planning.md).
    [[nodiscard]] static std::int64_t allocator_bytes(std::int64_t needed) {
      constexpr std::int64_t kOverheadPercent = 4;
      return needed * kOverheadPercent / 100;
    }

    [[nodiscard]] static std::int64_t resident(std::int64_t needed) {
      return needed + allocator_bytes(needed);
    }

    // What the process holds all the time, of its layers.
    [[nodiscard]] std::int64_t fixed_bytes() const {
      return constant_bytes + value_bytes + gradient_bytes + moment_bytes + sum_bytes + data_bytes;
    }

    [[nodiscard]] std::int64_t total(int in_flight, bool recompute, int queued_weights = 0) const {
      return baseline_bytes + resident(fixed_bytes() + (in_flight + 2) * boundary_bytes +
                                       (recompute ? 1 : in_flight) * saved_bytes +
                                       queued_weights * queued_bytes + workspace_bytes);
    }
  };

  [[nodiscard]] MemoryParts memory_parts(int slot, int first, int last, int micro_batch) const;
  // Without saved, queued and workspace bytes, which depend on the layers one by one.
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
  std::vector<std::size_t> machines_;     // [slot] number of its machine
  std::vector<SlotCost> slot_costs_;      // [slot]
  std::vector<MachineNetwork> networks_;  // [machine]
  std::vector<LinkSpeed> links_;          // [from slot * slots + to slot]
  std::vector<std::size_t> kinds_;        // [layer] index into the slots' samples
  int moments_per_parameter_ = 0;
  std::int64_t data_bytes_ = 0;
  int kept_per_encoded_ = 0;
  std::string gradient_codec_;
  std::vector<double> gradient_bytes_per_float_;  // [slot]
  // The codecs that the profiles name and whose size is the same for all values.
  std::map<std::string, std::shared_ptr<const Codec>> fixed_sizes_;
};

// The same costs with each of some codecs of gradients.
using CostModels = std::vector<const CostModel*>;

}  // namespace motley
