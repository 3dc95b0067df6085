#include "compression/feedback/codec_rates.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "compression/codec_chain.h"
#include "compression/feedback/gradient_compressor.h"
#include "compression/kernels/add_kernels.h"

namespace motley {
namespace {

constexpr float kMomentum = 0.9F;

std::vector<float> normal_values(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values_N(count);
  for (float& value : values_N) value = normal(random);
  return values_N;
}

// Times of one operation, without the first one, which touches memory for the first time.
class Times {
 public:
  template <class Operation>
  void add(const Operation& operation) {
    const double start_s = thread_cpu_s();
    operation();
    if (warm_) seconds_.push_back(thread_cpu_s() - start_s);
    warm_ = true;
  }

  [[nodiscard]] double rate(double bytes) {
    if (seconds_.empty()) return 0;
    const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
    std::nth_element(seconds_.begin(), middle, seconds_.end());
    return bytes / *middle;
  }

 private:
  bool warm_ = false;
  std::vector<double> seconds_;
};

// One slice: its range of values, its senders, and its last message.
struct Slice {
  std::size_t first = 0;
  std::size_t count = 0;
  std::unique_ptr<GradientCompressor> sender;
  std::unique_ptr<GradientCompressor> faster;  // with momentum: topk
  std::span<std::byte> wire_B;
  std::size_t bytes = 0;

  template <class Number>
  [[nodiscard]] std::span<Number> of(std::vector<Number>& values_N) const {
    return std::span(values_N).subspan(first, count);
  }
};

Result<std::vector<Slice>> make_slices(const std::string& chain,
                                       std::size_t count,
                                       std::size_t slice_count) {
  MOTLEY_ASSIGN(const CodecChain parsed, parse_codec_chain(chain));
  const CompressorOptions gathering = {.chain = chain, .momentum = kMomentum};
  std::vector<Slice> slices;
  for (std::size_t first = 0; first < count; first += slice_count) {
    Slice& slice = slices.emplace_back();
    slice.first = first;
    slice.count = std::min(slice_count, count - first);
    MOTLEY_ASSIGN(slice.sender, GradientCompressor::make({.chain = chain}, slice.count));
    if (!parsed.density.has_value()) continue;
    MOTLEY_ASSIGN(slice.faster, GradientCompressor::make(gathering, slice.count));
  }
  return slices;
}

}  // namespace

Result<CodecRates> measure_codec_rates(const std::string& chain,
                                       std::size_t count,
                                       std::size_t slice_count,
                                       int rounds) {
  MOTLEY_CHECK(count > 0 && slice_count > 0 && rounds > 0, "{} values, slices of {}, {} rounds",
               count, slice_count, rounds);
  MOTLEY_ASSIGN(std::vector<Slice> slices, make_slices(chain, count, slice_count));
  const Codec& codec = slices.front().sender->codec();
  const AddKernels& sums = best_add_kernels();
  std::vector<float> values_N = normal_values(count);
  std::vector<float> decoded_N(count);
  std::vector<std::byte> wire_B(slices.size() * slices.front().sender->bytes_max());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::size_t bytes = slices.front().sender->bytes_max();
    slices[i].wire_B = std::span(wire_B).subspan(i * bytes, bytes);
  }
  Result<void> read;
  // Times one operation, where use(slice) processes one slice.
  const auto time = [&](Times& times, const auto& use) {
    times.add([&] {
      for (Slice& slice : slices) use(slice);
    });
  };
  const auto note = [&](Result<void> done) {
    if (!done.ok()) read = std::move(done);
  };
  Times copy, sum, encode, feedback, momentum, decode, decode_add;
  for (int round = -1; round < rounds; ++round) {
    const std::int64_t step = round + 1;
    time(copy, [&](const Slice& slice) {
      std::memcpy(slice.of(decoded_N).data(), slice.of(values_N).data(),
                  slice.count * sizeof(float));
    });
    time(sum, [&](const Slice& slice) { sums.add(slice.of(values_N), slice.of(decoded_N)); });
    time(encode, [&](const Slice& slice) { codec.encode(slice.of(values_N), slice.wire_B); });
    if (slices.front().faster != nullptr) {
      time(momentum, [&](const Slice& slice) {
        slice.faster->encode(slice.of(values_N), step, slice.wire_B);
      });
    }
    time(feedback, [&](Slice& slice) {
      slice.bytes = slice.sender->encode(slice.of(values_N), step, slice.wire_B);
    });
    time(decode, [&](const Slice& slice) {
      note(codec.decode(slice.wire_B.first(slice.bytes), slice.of(decoded_N)));
    });
    time(decode_add, [&](const Slice& slice) {
      note(codec.decode_add(slice.wire_B.first(slice.bytes), slice.of(decoded_N)));
    });
    MOTLEY_TRY(read);
  }
  std::size_t wire_bytes = 0;
  for (const Slice& slice : slices) wire_bytes += slice.bytes;
  const auto bytes = static_cast<double>(count * sizeof(float));
  return CodecRates{
      .chain = codec.name(),
      .wire_bytes_per_value = static_cast<double>(wire_bytes) / static_cast<double>(count),
      .copy_bytes_per_s = copy.rate(bytes),
      .sum_bytes_per_s = sum.rate(bytes),
      .encode_bytes_per_s = encode.rate(bytes),
      .feedback_bytes_per_s = feedback.rate(bytes),
      .momentum_bytes_per_s = momentum.rate(bytes),
      .decode_bytes_per_s = decode.rate(bytes),
      .decode_add_bytes_per_s = decode_add.rate(bytes)};
}

}  // namespace motley
