#include "partitioner/cost/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/wire_sizes.h"
#include "compression/codec/codec.h"

namespace motley {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr const char* kUncoded = "none";  // exact bytes cost what this codec costs
// Bytes of an all-reduce in flight in each direction: frames, or the buffers that ranks on a
// machine share, which count towards the memory of the ranks that read them
// (pipeline/collectives/hierarchical_allreduce.h, decision 0042).
constexpr std::int64_t kAllreduceWindowBytes = 12 << 18;

}  // namespace

LayerSample CostModel::layer(int slot, int layer, int micro_batch) const {
  const std::size_t kind = kinds_[static_cast<std::size_t>(layer)];
  return interpolate(slot_costs_[static_cast<std::size_t>(slot)].samples[kind], micro_batch);
}

double CostModel::forward_s(int slot, int first, int last, int micro_batch) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) sum_s += layer(slot, l, micro_batch).forward_s;
  return sum_s;
}

double CostModel::backward_s(int slot, int first, int last, int micro_batch, bool recompute) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    sum_s += sample.backward_s + (recompute ? sample.forward_s : 0);
  }
  return sum_s;
}

double CostModel::backward_input_s(
    int slot, int first, int last, int micro_batch, bool recompute) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    sum_s += sample.backward_input_s() + (recompute ? sample.forward_s : 0);
  }
  return sum_s;
}

double CostModel::backward_weight_s(int slot, int first, int last, int micro_batch) const {
  double sum_s = 0;
  for (int l = first; l < last; ++l) sum_s += layer(slot, l, micro_batch).backward_weight_s();
  return sum_s;
}

double CostModel::optimizer_s(int slot, int first, int last) const {
  return slot_costs_[static_cast<std::size_t>(slot)].optimizer_s_per_parameter *
         static_cast<double>(sizes_.updated_parameters(first, last));
}

const CodecSample& CostModel::codec(int slot, const std::string& name) const {
  const auto& codecs = slot_costs_[static_cast<std::size_t>(slot)].codecs;
  const auto found = codecs.find(name);
  MOTLEY_CHECK(found != codecs.end(), "codec '{}' was not measured", name);
  return found->second;
}

double CostModel::encode_s(int slot, double floats, const std::string& codec_name) const {
  return floats * codec(slot, codec_name).encode_s_per_float;
}

double CostModel::decode_s(int slot, double floats, const std::string& codec_name) const {
  return floats * codec(slot, codec_name).decode_s_per_float;
}

double CostModel::encode_s(int slot,
                           const BoundarySize& size,
                           const std::string& codec_name) const {
  return encode_s(slot, static_cast<double>(size.floats), codec_name) +
         encode_s(slot, static_cast<double>(size.exact_bytes) / kFloatBytes, kUncoded);
}

double CostModel::decode_s(int slot,
                           const BoundarySize& size,
                           const std::string& codec_name) const {
  return decode_s(slot, static_cast<double>(size.floats), codec_name) +
         decode_s(slot, static_cast<double>(size.exact_bytes) / kFloatBytes, kUncoded);
}

double CostModel::message_s(int slot) const {
  return slot_costs_[static_cast<std::size_t>(slot)].message_s;
}

bool CostModel::shares_memory(int slot) const {
  return slot_costs_[static_cast<std::size_t>(slot)].shared_s_per_float > 0;
}

double CostModel::hand_s(int slot, double floats) const {
  const double shared_s = slot_costs_[static_cast<std::size_t>(slot)].shared_s_per_float;
  return shared_s > 0 ? floats * shared_s : encode_s(slot, floats, kUncoded);
}

double CostModel::take_s(int slot, double floats) const {
  const double shared_s = slot_costs_[static_cast<std::size_t>(slot)].shared_s_per_float;
  return shared_s > 0 ? floats * shared_s : decode_s(slot, floats, kUncoded);
}

bool CostModel::overlaps_codecs(int slot) const {
  return leaves_processor_free(slots_[static_cast<std::size_t>(slot)].device);
}

double CostModel::boundary_before_s(int slot,
                                    const BoundarySize& size,
                                    const std::string& codec) const {
  if (overlaps_codecs(slot)) return 0;
  return encode_s(slot, size, codec) + decode_s(slot, size.gradient(), codec) + 2 * message_s(slot);
}

double CostModel::boundary_behind_s(int slot,
                                    const BoundarySize& size,
                                    const std::string& codec) const {
  if (overlaps_codecs(slot)) return 0;
  return encode_s(slot, size.gradient(), codec) + decode_s(slot, size, codec) + 2 * message_s(slot);
}

double CostModel::overlapped_s(int from_slot,
                               int to_slot,
                               const BoundarySize& size,
                               const std::string& codec) const {
  double seconds = 0;
  if (overlaps_codecs(from_slot))
    seconds += message_s(from_slot) + encode_s(from_slot, size, codec);
  if (overlaps_codecs(to_slot)) seconds += message_s(to_slot) + decode_s(to_slot, size, codec);
  return seconds;
}

double CostModel::payload_bytes(int slot, double floats, const std::string& codec_name) const {
  const auto fixed = fixed_sizes_.find(codec_name);
  if (fixed != fixed_sizes_.end()) {
    return static_cast<double>(fixed->second->bytes_max(static_cast<std::size_t>(floats)));
  }
  return std::ceil(floats * codec(slot, codec_name).bytes_per_float);
}

double CostModel::frame_bytes(int slot,
                              const BoundarySize& size,
                              const std::string& codec_name) const {
  return static_cast<double>(kFrameHeaderBytes) +
         payload_bytes(slot, static_cast<double>(size.floats), codec_name) +
         static_cast<double>(size.exact_bytes);
}

bool CostModel::is_half_duplex(int slot, int other) const {
  return !same_machine(slot, other) && !(networks_[machine_of(slot)].medium.empty() &&
                                         networks_[machine_of(other)].medium.empty());
}

double CostModel::transfer_s(int from_slot, int to_slot, double bytes) const {
  const LinkSpeed& speed = link(from_slot, to_slot);
  return speed.latency_s + bytes / speed.bandwidth_bytes_per_s;
}

double CostModel::machine_bandwidth(int slot, std::span<const int> slots) const {
  double fastest = 0;
  for (const int other : slots) {
    if (machine_of(other) == machine_of(slot)) continue;
    fastest = std::max(fastest, std::min(link(slot, other).bandwidth_bytes_per_s,
                                         link(other, slot).bandwidth_bytes_per_s));
  }
  return fastest;
}

// Buckets overlap, so the phases inside machines and those between them each keep their links busy
// to the end; only the first and last buckets do not overlap, and are short.
AllreduceTime CostModel::allreduce_time(std::span<const int> slots, std::int64_t parameters) const {
  if (slots.size() < 2) return {};
  const auto floats = static_cast<double>(parameters);
  std::size_t machines = 0;
  double inside_s = 0;
  double inside_busy_s = 0;  // in the first of the two phases
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto is_here = [&](int slot) { return machine_of(slot) == machine_of(slots[i]); };
    if (std::none_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(i), is_here)) {
      ++machines;
    }
    const auto others = static_cast<double>(std::count_if(slots.begin(), slots.end(), is_here) - 1);
    // In each of two phases every rank of the machine sends a slice to each other one.
    if (others > 0) {
      const double there_s = transfer_s(slots[i], slots[i], others * floats * kFloatBytes);
      inside_s = std::max(inside_s, 2 * there_s);
      inside_busy_s = std::max(inside_busy_s, there_s - link(slots[i], slots[i]).latency_s);
    }
  }
  if (machines < 2) return {inside_busy_s, inside_s};
  // Two machines exchange everything in one phase; more of them use two phases, each part by part.
  const double phases = machines == 2 ? 1 : 2;
  const auto count = static_cast<double>(machines);
  const double share = machines == 2 ? 1 : (count - 1) / count;
  double phase_s = 0;
  double phase_busy_s = 0;
  for (const int from : slots) {
    const double bytes = share * floats * gradient_bytes_per_float_[static_cast<std::size_t>(from)];
    for (const int to : slots) {
      if (machine_of(from) == machine_of(to)) continue;
      // Each machine sends while it receives.
      const double both_ways = is_half_duplex(from, to) ? 2 : 1;
      const double there_s = transfer_s(from, to, both_ways * bytes);
      phase_s = std::max(phase_s, there_s);
      phase_busy_s = std::max(phase_busy_s, there_s - link(from, to).latency_s);
    }
  }
  return {inside_s > 0 ? inside_busy_s : phase_busy_s, inside_s + phases * phase_s};
}

std::int64_t CostModel::encoder_bytes(std::span<const int> slots,
                                      int slot,
                                      int first,
                                      int last) const {
  if (feedback_per_encoded_ == 0) return 0;
  const auto here = std::ranges::count_if(slots, [&](int it) { return same_machine(it, slot); });
  if (here == std::ssize(slots)) return 0;
  // The ranks of a machine divide what it sends: its contributions to other parts, and the total of
  // its own part.
  return MemoryParts::resident(encoder_bytes(sizes_.reduced_parameters(first, last) / here));
}

CostModel CostModel::without_tied() const {
  CostModel cost = *this;
  cost.sizes_.untie();
  return cost;
}

CostModel::MemoryParts CostModel::fixed_memory(int slot,
                                               int first,
                                               int last,
                                               int micro_batch) const {
  const SlotCost& costs = slot_costs_[static_cast<std::size_t>(slot)];
  MemoryParts parts;
  parts.baseline_bytes = costs.baseline_bytes;
  const std::int64_t updated = sizes_.updated_parameters(first, last);
  parts.constant_bytes = sizes_.constant_bytes(first, last);
  parts.value_bytes = updated * (kFloatBytes + costs.rounded_bytes_per_parameter);
  parts.gradient_bytes = updated * kFloatBytes;
  parts.moment_bytes =
      sizes_.trained_parameters(first, last) * moments_per_parameter_ * kFloatBytes;
  const std::int64_t tied_bytes = sizes_.tied_parameters() * kFloatBytes;
  const int tied_uses = sizes_.tied_uses(first, last);
  if (tied_uses == 1) {
    // Of the all-reduce over the ranks that hold a use: outgoing and incoming frames, or this
    // rank's shared buffer and the other's.
    parts.allreduce_bytes = 2 * std::min(tied_bytes, kAllreduceWindowBytes);
  } else if (tied_uses == 2) {
    // The second use has values and gradients of its own.
    parts.value_bytes += tied_bytes + sizes_.tied_parameters() * costs.rounded_bytes_per_parameter;
    parts.gradient_bytes += tied_bytes;
  }
  parts.data_bytes = sizes_.sample_bytes(first, last, micro_batch);
  if (first == 0 && !has_own_memory(slots_[static_cast<std::size_t>(slot)].device)) {
    parts.data_bytes += data_bytes_;
  }
  parts.boundary_bytes = (first == 0 ? 0 : boundary(first - 1, micro_batch).bytes()) +
                         boundary(last - 1, micro_batch).bytes();
  return parts;
}

CostModel::MemoryParts CostModel::memory_parts(int slot,
                                               int first,
                                               int last,
                                               int micro_batch) const {
  MemoryParts parts = fixed_memory(slot, first, last, micro_batch);
  for (int l = first; l < last; ++l) {
    const LayerSample sample = layer(slot, l, micro_batch);
    parts.saved_bytes += sample.saved_bytes;
    if (sample.split) parts.queued_bytes += sample.split->queued_bytes;
    parts.workspace_bytes = std::max(parts.workspace_bytes, sample.workspace_bytes);
  }
  parts.saved_bytes -= sizes_.saved_twice_bytes(first, last, micro_batch);
  return parts;
}

std::int64_t CostModel::memory_bytes(int slot,
                                     int first,
                                     int last,
                                     int micro_batch,
                                     int in_flight,
                                     bool recompute,
                                     int queued_weights) const {
  return memory_parts(slot, first, last, micro_batch).total(in_flight, recompute, queued_weights);
}

}  // namespace motley
