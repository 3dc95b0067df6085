// How fast one core encodes, with and without error feedback, decodes and adds, beside memcpy of
// the same values in the same rounds.
//
//   build/core/bin/codec_speed [MIB [CHAIN...]]
//
// MIB of normally distributed fp32 values, 256 by default: more than most caches hold. Rates are
// shares of memcpy's, which is printed; compression/codec_rates.h says what is measured.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "compression/codec_rates.h"

namespace {

using namespace motley;

constexpr int kRounds = 7;

std::string share(double bytes_per_s, const CodecRates& rates) {
  return bytes_per_s == 0 ? "-" : fmt::format("{:.2f}", bytes_per_s / rates.copy_bytes_per_s);
}

void print(const CodecRates& rates) {
  fmt::print("{:<24} {:>11.4f} {:>11.2f} {:>7} {:>9} {:>9} {:>7} {:>7}\n", rates.chain,
             rates.wire_bytes_per_value, rates.copy_bytes_per_s / 1e9,
             share(rates.encode_bytes_per_s, rates), share(rates.feedback_bytes_per_s, rates),
             share(rates.momentum_bytes_per_s, rates), share(rates.decode_bytes_per_s, rates),
             share(rates.decode_add_bytes_per_s, rates));
}

}  // namespace

int main(int argc, char** argv) {
  const int mebibytes = argc > 1 ? std::atoi(argv[1]) : 256;
  if (mebibytes < 1) {
    fmt::print(stderr, "usage: codec_speed [MIB [CHAIN...]]\n");
    return 2;
  }
  std::vector<std::string> chains(argv + std::min(argc, 2), argv + argc);
  if (chains.empty()) {
    chains = {"none",
              "fp16",
              "bf16",
              "int8",
              "int4",
              "topk(0.01)",
              "topk(0.01)|fp16",
              "topk(0.01)|int8",
              "topk(0.25)",
              "fp16|zstd(1)",
              "int8|zstd(1)",
              "int4|zstd(1)",
              "topk(0.01)|int8|zstd(1)"};
  }
  const std::size_t floats = static_cast<std::size_t>(mebibytes) << 18;
  fmt::print("{} MiB of fp32; rates as shares of memcpy\n", mebibytes);
  fmt::print("{:<24} {:>11} {:>11} {:>7} {:>9} {:>9} {:>7} {:>7}\n", "codec", "bytes/value",
             "memcpy GB/s", "encode", "feedback", "momentum", "decode", "add");
  for (const std::string& chain : chains) {
    const Result<CodecRates> rates = measure_codec_rates(chain, floats, kRounds);
    if (!rates.ok()) {
      fmt::print(stderr, "{}", describe(rates.error()));
      return 1;
    }
    print(*rates);
  }
  return 0;
}
