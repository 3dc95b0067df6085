#include "profiling/codec_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/median.h"
#include "base/philox.h"
#include "comm/frames/frame_link.h"
#include "comm/make_transport.h"
#include "comm/transport/shared_memory.h"
#include "compression/codec/codec.h"
#include "compression/facts/codec_facts.h"
#include "compression/kernels/add_kernels.h"
#include "compression/make_codec.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {
namespace {

constexpr std::size_t kFloats = std::size_t{1} << 20;  // 4 MiB: the size of large boundary messages
constexpr int kRuns = 7;
constexpr int kSmallMessages = 64;
constexpr double kFrameWait_s = 30;

// Both ends of a connection in this process.
struct Loopback {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<FrameLink> links;
  std::int64_t sent = 0;  // frames so far; makes each frame's id unique
};

Result<std::vector<std::unique_ptr<Transport>>> connect_loopback(TransportOptions options) {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    options.rank = Rank{rank};
    options.rank_count = 2;
    MOTLEY_ASSIGN(auto transport, make_transport(options));
    addresses.push_back(transport->address());
    transports.push_back(std::move(transport));
  }
  // Each end may wait for the other.
  const Deadline deadline = Deadline::after_s(kFrameWait_s);
  Result<void> connected;
  std::jthread other([&] { connected = transports[1]->connect(addresses, deadline); });
  MOTLEY_TRY(transports[0]->connect(addresses, deadline));
  other.join();
  MOTLEY_TRY(connected);
  return transports;
}

Result<Loopback> make_loopback(const TransportOptions& options) {
  Loopback loopback;
  MOTLEY_ASSIGN(loopback.transports, connect_loopback(options));
  for (int rank = 0; rank < 2; ++rank) {
    loopback.links.emplace_back(*loopback.transports[static_cast<std::size_t>(rank)], Rank{rank}, 1,
                                0);
  }
  return loopback;
}

// Sends a frame from end 0 to end 1 and waits for it; returns the received buffer.
Result<Buffer> pass(Loopback& loopback, Buffer payload, std::size_t bytes_max) {
  const FrameId id{FrameKind::kActivation, ChunkId{0}, MicroId{0}, ++loopback.sent};
  PendingFrame arriving = loopback.links[1].recv(Rank{0}, id, Buffer(bytes_max));
  Pending leaving = loopback.links[0].send(Rank{1}, id, std::move(payload));
  MOTLEY_ASSIGN(Buffer arrived, arriving.wait(Deadline::after_s(kFrameWait_s)));
  MOTLEY_TRY(leaving.wait(Deadline::after_s(kFrameWait_s), "the frame to leave"));
  return arrived;
}

// Normally distributed, roughly as activations and gradients are; zstd's ratio depends on the
// distribution.
std::vector<float> normal_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i += 2) {
    const PhiloxBlock bits = philox4x32(1, 0, i);
    const float radius = std::sqrt(-2.0F * std::log(1.0F - to_unit_float(bits[0])));
    const float angle = 2.0F * std::numbers::pi_v<float> * to_unit_float(bits[1]);
    values[i] = radius * std::cos(angle);
    if (i + 1 < count) values[i + 1] = radius * std::sin(angle);
  }
  return values;
}

// Processor seconds are added over all threads, because the transport copies in its own threads.
// The time between encode and decode is attributed to both ends in equal parts.
Result<CodecSample> measure_codec(const Codec& codec,
                                  Loopback& loopback,
                                  const std::vector<float>& values_N) {
  std::vector<float> decoded_N(values_N.size());
  std::vector<double> encode_s;
  std::vector<double> decode_s;
  CodecSample sample;
  const std::size_t bytes_max = codec.bytes_max(values_N.size());
  for (int run = -1; run < kRuns; ++run) {
    Buffer buffer(bytes_max);
    const double start_s = process_cpu_s();
    buffer.set_payload_bytes(codec.encode(values_N, buffer.payload_space()));
    sample.bytes_per_float =
        static_cast<double>(buffer.payload_bytes()) / static_cast<double>(values_N.size());
    const double encoded_s = process_cpu_s();
    MOTLEY_ASSIGN(const Buffer arrived, pass(loopback, std::move(buffer), bytes_max));
    const double arrived_s = process_cpu_s();
    MOTLEY_TRY(codec.decode(arrived.payload(), decoded_N));
    const double end_s = process_cpu_s();
    if (run < 0) continue;  // the first run touches memory for the first time
    const double half_way_s = (arrived_s - encoded_s) / 2;
    encode_s.push_back(encoded_s - start_s + half_way_s);
    decode_s.push_back(end_s - arrived_s + half_way_s);
  }
  sample.encode_s_per_float = median(encode_s) / static_cast<double>(values_N.size());
  sample.decode_s_per_float = median(decode_s) / static_cast<double>(values_N.size());
  return sample;
}

Result<double> measure_message(Loopback& loopback) {
  std::vector<double> message_s;
  for (int run = -1; run < kRuns; ++run) {
    const double start_s = process_cpu_s();
    for (int message = 0; message < kSmallMessages; ++message) {
      MOTLEY_ASSIGN([[maybe_unused]] const Buffer arrived, pass(loopback, Buffer(64), 64));
    }
    if (run >= 0) message_s.push_back((process_cpu_s() - start_s) / (2 * kSmallMessages));
  }
  return median(message_s);
}

// Emulates the shared-memory path of an all-reduce (pipeline/collectives/shared_reduce_buffers.h):
// a bucket of a gradient that is not in the caches is copied to a window of shared memory and added
// from there to another one. One core does both here; in a run another core reads, whose caches do
// not hold the buffer. 0 if the system provides no such memory: ranks then send each other the
// values.
double measure_shared() {
  constexpr std::size_t kBuckets = 128;
  constexpr std::size_t kWindow = 12;
  const auto memory = SharedMemory::make(kWindow * kBucketValues * sizeof(float));
  if (!memory.ok()) return 0;
  const std::span shared(reinterpret_cast<float*>(memory->bytes().data()), kWindow * kBucketValues);
  const AddKernels sums = best_add_kernels();
  std::vector<float> gradient(kBuckets * kBucketValues, 1.0F);
  std::vector<float> sum(gradient.size());
  std::vector<double> shared_s;
  for (int run = -1; run < kRuns; ++run) {
    const double start_s = process_cpu_s();
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      const auto shown = shared.subspan(bucket % kWindow * kBucketValues, kBucketValues);
      const auto of = [&](std::vector<float>& all) {
        return std::span(all).subspan(bucket * kBucketValues, kBucketValues);
      };
      std::ranges::copy(of(gradient), shown.begin());
      sums.add(shown, of(sum));
    }
    if (run >= 0) shared_s.push_back(process_cpu_s() - start_s);
  }
  return median(shared_s) / static_cast<double>(2 * gradient.size());
}

}  // namespace

std::vector<std::string> chains_to_measure(const CompressionConfig& compression, bool all) {
  std::vector<std::string> chains;
  for (const CodecFacts& codec : codecs()) {
    if (codec.is_measured) chains.emplace_back(codec.name);
  }
  if (all) {
    const std::vector<std::string> formats = chains;
    for (const std::string& format : formats) {
      chains.push_back(fmt::format("{}|{}(1)", format, codec_facts(CodecKind::kZstd).name));
    }
  }
  for (const std::string& chain : {compression.activations, compression.gradients}) {
    if (chain != "auto") chains.push_back(chain);  // "auto" selects among those above
  }
  const std::string& of_rounds = compression.pseudo_gradients;
  if (std::ranges::find(chains, of_rounds) == chains.end()) chains.push_back(of_rounds);
  return chains;
}

Result<WireCost> measure_wire_cost(const std::vector<std::string>& chains,
                                   const TransportOptions& transport) {
  MOTLEY_ASSIGN(Loopback loopback, make_loopback(transport));
  const std::vector<float> values_N = normal_values(kFloats);
  WireCost cost;
  std::vector<std::string> all = {"none"};
  all.insert(all.end(), chains.begin(), chains.end());
  for (const std::string& chain : all) {
    MOTLEY_ASSIGN(const auto codec, make_codec(chain));
    if (cost.codecs.contains(codec->name())) continue;
    MOTLEY_ASSIGN(cost.codecs[codec->name()], measure_codec(*codec, loopback, values_N));
  }
  MOTLEY_ASSIGN(cost.message_s, measure_message(loopback));
  cost.shared_s_per_float = measure_shared();
  return cost;
}

}  // namespace motley
