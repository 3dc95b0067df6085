#include "compression/codec_rates.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>

#include "base/check.h"
#include "base/clock.h"
#include "compression/codec_chain.h"
#include "compression/gradient_compressor.h"

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

// Times of one operation, the first of which, that touches memory for the first time, is left out.
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

}  // namespace

Result<CodecRates> measure_codec_rates(const std::string& chain, std::size_t count, int rounds) {
  MOTLEY_CHECK(count > 0 && rounds > 0, "{} values, {} rounds", count, rounds);
  MOTLEY_ASSIGN(const CodecChain parsed, parse_codec_chain(chain));
  MOTLEY_ASSIGN(const auto compressor, GradientCompressor::make({.chain = chain}, count));
  std::unique_ptr<GradientCompressor> faster;
  if (parsed.density.has_value()) {
    const CompressorOptions options = {.chain = chain, .momentum = kMomentum};
    MOTLEY_ASSIGN(faster, GradientCompressor::make(options, count));
  }
  const Codec& codec = compressor->codec();
  const std::vector<float> values_N = normal_values(count);
  std::vector<float> decoded_N(count);
  std::vector<std::byte> wire_B(compressor->bytes_max());
  std::size_t wire_bytes = 0;
  Result<void> read;
  Times copy, encode, feedback, momentum, decode, decode_add;
  for (int round = -1; round < rounds; ++round) {
    copy.add([&] { std::memcpy(decoded_N.data(), values_N.data(), count * sizeof(float)); });
    encode.add([&] { codec.encode(values_N, wire_B); });
    if (faster) momentum.add([&] { faster->encode(values_N, round + 1, wire_B); });
    feedback.add([&] { wire_bytes = compressor->encode(values_N, round + 1, wire_B); });
    const auto message_B = std::span(wire_B).first(wire_bytes);
    decode.add([&] { read = codec.decode(message_B, decoded_N); });
    MOTLEY_TRY(read);
    decode_add.add([&] { read = codec.decode_add(message_B, decoded_N); });
    MOTLEY_TRY(read);
  }
  const auto bytes = static_cast<double>(count * sizeof(float));
  return CodecRates{
      .chain = codec.name(),
      .wire_bytes_per_value = static_cast<double>(wire_bytes) / static_cast<double>(count),
      .copy_bytes_per_s = copy.rate(bytes),
      .encode_bytes_per_s = encode.rate(bytes),
      .feedback_bytes_per_s = feedback.rate(bytes),
      .momentum_bytes_per_s = momentum.rate(bytes),
      .decode_bytes_per_s = decode.rate(bytes),
      .decode_add_bytes_per_s = decode_add.rate(bytes)};
}

}  // namespace motley
