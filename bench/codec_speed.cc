// The speed at which one core encodes, with and without error feedback, decodes and adds. In the
// same rounds it measures memcpy and a plain sum of the same values.
//
//   build/core/bin/codec_speed [--mib 256] [--slice-kib 256] [--rounds 7] [--json] [CHAIN...]
//
// MIB of normally distributed fp32 values, by default more than most caches hold, as one slice or
// in slices of this many KiB. Rates are relative to memcpy's, which is printed;
// compression/feedback/codec_rates.h defines the measured quantities. With --json: one object per
// codec, in bytes per second. bench/codec_speed_peer.py measures PyTorch for comparison.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "compression/feedback/codec_rates.h"

namespace {

using namespace motley;
namespace po = boost::program_options;

struct Run {
  std::uint32_t mebibytes = 256;
  std::uint32_t slice_kibibytes = 0;  // 0: one slice
  int rounds = 7;
  bool json = false;
  std::vector<std::string> chains = {"none",
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
};

bool read_options(int argc, char** argv, Run& run) {
  po::options_description options("codec_speed");
  options.add_options()("help", "this text")(
      "mib", po::value(&run.mebibytes)->default_value(run.mebibytes), "of values")(
      "slice-kib", po::value(&run.slice_kibibytes)->default_value(0), "of a slice; 0: all are one")(
      "rounds", po::value(&run.rounds)->default_value(run.rounds), "the medians count")(
      "json", po::bool_switch(&run.json), "one object a codec")(
      "chain", po::value<std::vector<std::string>>(), "codecs");
  const auto places = po::positional_options_description().add("chain", -1);
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(options).positional(places).run(), given);
  po::notify(given);
  if (given.count("help") != 0) std::cout << options;
  if (given.count("chain") != 0) run.chains = given["chain"].as<std::vector<std::string>>();
  if (run.mebibytes < 1 || run.rounds < 1) throw po::error("mib and rounds must be positive");
  return given.count("help") == 0;
}

std::string share(double bytes_per_s, const CodecRates& rates) {
  return bytes_per_s == 0 ? "-" : fmt::format("{:.2f}", bytes_per_s / rates.copy_bytes_per_s);
}

void print(const CodecRates& rates) {
  fmt::print("{:<24} {:>11.4f} {:>11.2f} {:>6} {:>7} {:>9} {:>9} {:>7} {:>7}\n", rates.chain,
             rates.wire_bytes_per_value, rates.copy_bytes_per_s / 1e9,
             share(rates.sum_bytes_per_s, rates), share(rates.encode_bytes_per_s, rates),
             share(rates.feedback_bytes_per_s, rates), share(rates.momentum_bytes_per_s, rates),
             share(rates.decode_bytes_per_s, rates), share(rates.decode_add_bytes_per_s, rates));
}

void print_json(const CodecRates& rates) {
  fmt::print(
      "{{\"codec\": \"{}\", \"bytes_per_value\": {}, \"memcpy\": {}, \"sum\": {}, \"encode\": {}, "
      "\"feedback\": {}, \"momentum\": {}, \"decode\": {}, \"add\": {}}}\n",
      rates.chain, rates.wire_bytes_per_value, rates.copy_bytes_per_s, rates.sum_bytes_per_s,
      rates.encode_bytes_per_s, rates.feedback_bytes_per_s, rates.momentum_bytes_per_s,
      rates.decode_bytes_per_s, rates.decode_add_bytes_per_s);
}

int measure(const Run& run) {
  const std::size_t count = std::size_t{run.mebibytes} << 18;
  const std::size_t slice =
      run.slice_kibibytes == 0 ? count : std::size_t{run.slice_kibibytes} << 8;
  if (!run.json) {
    fmt::print("{} MiB of fp32 in slices of {} KiB; rates as shares of memcpy\n", run.mebibytes,
               slice >> 8);
    fmt::print("{:<24} {:>11} {:>11} {:>6} {:>7} {:>9} {:>9} {:>7} {:>7}\n", "codec", "bytes/value",
               "memcpy GB/s", "a += b", "encode", "feedback", "momentum", "decode", "add");
  }
  for (const std::string& chain : run.chains) {
    const Result<CodecRates> rates = measure_codec_rates(chain, count, slice, run.rounds);
    if (!rates.ok()) {
      fmt::print(stderr, "{}", describe(rates.error()));
      return 1;
    }
    run.json ? print_json(*rates) : print(*rates);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Run run;
  try {
    if (!read_options(argc, argv, run)) return 0;
  } catch (const po::error& error) {
    fmt::print(stderr, "codec_speed: {}\n", error.what());
    return 2;
  }
  return measure(run);
}
