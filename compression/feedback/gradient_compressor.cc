#include "compression/feedback/gradient_compressor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

constexpr double kWarmupShare = 0.25;  // of the values, and from one warm-up stage to the next

Result<CodecChain> parse_options(const CompressorOptions& options) {
  MOTLEY_ASSIGN(CodecChain chain, parse_codec_chain(options.chain));
  const auto refused = [&](const char* cause, const char* remedy) {
    return Error{ErrorCode::kConfig,
                 fmt::format("invalid compression of gradients by '{}'", options.chain), cause,
                 remedy};
  };
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    return refused("the momentum is not from 0 to below 1", "use 0.9, or 0 for none");
  }
  if (options.momentum > 0 && !(chain.density.has_value() && options.error_feedback)) {
    return refused("momentum before sending needs topk and error feedback",
                   "leave momentum to the optimizer, or use topk(0.01)");
  }
  if (options.warmup_steps < 0) return refused("the warm-up has less than 0 steps", "use 0");
  if (options.warmup_steps > 0 && !chain.density.has_value()) {
    return refused("only topk has a density to warm up", "use 0 steps of warm-up, or topk(0.01)");
  }
  return chain;
}

// The number of densities 1/4, 1/16, … above the chain's density.
int count_warmup_stages(const CompressorOptions& options, double density) {
  int stages = 0;
  if (options.warmup_steps == 0) return stages;
  for (double share = kWarmupShare; share > density; share *= kWarmupShare) ++stages;
  return stages;
}

// Only topk has a density.
double density_of(const CodecChain& chain) {
  return chain.density.value_or(1);
}

std::unique_ptr<const Codec> make_reader(const CompressorOptions& options,
                                         const CodecChain& chain) {
  const double density = density_of(chain);
  const bool warm = count_warmup_stages(options, density) > 0;
  return make_chain_codec(chain, warm ? kWarmupShare : density);
}

}  // namespace

Result<std::unique_ptr<GradientCompressor>> GradientCompressor::make(
    const CompressorOptions& options, std::size_t count) {
  MOTLEY_ASSIGN(const CodecChain chain, parse_options(options));
  return std::unique_ptr<GradientCompressor>(new GradientCompressor(options, chain, count));
}

GradientCompressor::GradientCompressor(const CompressorOptions& options,
                                       const CodecChain& chain,
                                       std::size_t count)
    : options_(options),
      chain_(chain),
      count_(count),
      warmup_stages_(count_warmup_stages(options, density_of(chain))),
      codec_(make_reader(options, chain)) {
  const bool fed_back = options.error_feedback && chain.lossy();
  if (fed_back) residual_N_.resize(count);
  if (options.momentum > 0) velocity_N_.resize(count);
  if (chain.density.has_value()) sparse_.emplace(chain.format);
  if (chain.zstd_level > 0) packer_.emplace(chain.zstd_level);
}

double GradientCompressor::density(std::int64_t step) const {
  const double target = density_of(chain_);
  if (step >= options_.warmup_steps || warmup_stages_ == 0) return target;
  const double part = static_cast<double>(step) / static_cast<double>(options_.warmup_steps);
  const double stage = std::floor(part * warmup_stages_);
  return std::pow(kWarmupShare, stage + 1);
}

std::size_t GradientCompressor::encode(std::span<const float> gradient_N,
                                       std::int64_t step,
                                       std::span<std::byte> wire_B) {
  return encode(gradient_N, step, /*is_gathered=*/false, wire_B);
}

void GradientCompressor::apply_momentum(std::span<float> gradient_N) {
  MOTLEY_CHECK(options_.momentum > 0 && gradient_N.size() == count_,
               "{} values of a slice of {}, momentum {}", gradient_N.size(), count_,
               options_.momentum);
  for (std::size_t i = 0; i < count_; ++i) {
    velocity_N_[i] = options_.momentum * velocity_N_[i] + gradient_N[i];
    gradient_N[i] = velocity_N_[i];
  }
}

std::size_t GradientCompressor::encode_corrected(std::span<const float> corrected_N,
                                                 std::int64_t step,
                                                 std::span<std::byte> wire_B) {
  return encode(corrected_N, step, /*is_gathered=*/true, wire_B);
}

std::size_t GradientCompressor::encode(std::span<const float> values_N,
                                       std::int64_t step,
                                       bool is_gathered,
                                       std::span<std::byte> wire_B) {
  MOTLEY_CHECK(values_N.size() == count_, "{} values of a slice of {}", values_N.size(), count_);
  MOTLEY_CHECK(step >= 0, "step {}", step);
  MOTLEY_CHECK(wire_B.size() >= bytes_max(), "buffer: {} of {} bytes", wire_B.size(), bytes_max());
  if (!sparse_ && residual_N_.empty()) return codec_->encode(values_N, wire_B);
  if (!packer_) return encode_fed_back(values_N, step, is_gathered, wire_B);
  unpacked_B_.resize(std::max(unpacked_B_.size(), unpacked_bytes_max(step)));
  const std::size_t bytes = encode_fed_back(values_N, step, is_gathered, unpacked_B_);
  return packer_->pack(std::span(unpacked_B_).first(bytes), wire_B);
}

std::size_t GradientCompressor::unpacked_bytes_max(std::int64_t step) const {
  if (sparse_) return sparse_bytes_max(count_, density(step), chain_.format);
  return chain_.format.bytes(count_);
}

std::size_t GradientCompressor::encode_fed_back(std::span<const float> values_N,
                                                std::int64_t step,
                                                bool is_gathered,
                                                std::span<std::byte> wire_B) {
  if (!sparse_) {
    chain_.format.encode_feedback(values_N, residual_N_, wire_B.data());
    return chain_.format.bytes(count_);
  }
  const double share = density(step);
  // An exact threshold is computed per slice, independently of the last one.
  if (options_.momentum > 0 && !SparseThreshold::is_exact(count_, share)) sparse_->reset();
  const Feedback feedback = {residual_N_, velocity_N_, options_.momentum, is_gathered};
  return sparse_->encode(values_N, share, feedback, wire_B);
}

void GradientCompressor::reset() {
  std::ranges::fill(residual_N_, 0.0F);
  std::ranges::fill(velocity_N_, 0.0F);
  if (sparse_) sparse_->reset();
}

void GradientCompressor::restore(State state) {
  residual_N_ = std::move(state.residual_N);
  velocity_N_ = std::move(state.velocity_N);
  sparse_ = std::move(state.sparse);
}

Result<std::unique_ptr<const Codec>> make_gradient_codec(const CompressorOptions& options) {
  MOTLEY_ASSIGN(const CodecChain chain, parse_options(options));
  return make_reader(options, chain);
}

}  // namespace motley
