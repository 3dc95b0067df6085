// How fast one core encodes and decodes, beside memcpy of the same values in the same run.
//
//   build/core/bin/codec_speed [MIB [CHAIN...]]
//
// MIB of normally distributed fp32 values, 256 by default: more than most caches hold. Rounds take
// the codecs in turn, so that what else the machine does falls on all of them. Rates are fp32 bytes
// a second of the thread's processor time, medians of the rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "compression/codec.h"

namespace {

using namespace motley;

constexpr int kRounds = 7;

struct Subject {
  std::unique_ptr<const Codec> codec;
  std::size_t wire_bytes = 0;
  std::vector<double> encode_s;
  std::vector<double> decode_s;
};

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::vector<float> normal_values(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values_N(count);
  for (float& value : values_N) value = normal(random);
  return values_N;
}

struct Measured {
  std::vector<double> copy_s;
  std::vector<Subject> subjects;
};

Result<Measured> measure(std::size_t floats, const std::vector<std::string>& chains) {
  Measured measured;
  std::size_t wire_room = 0;
  for (const std::string& chain : chains) {
    MOTLEY_ASSIGN(auto codec, make_codec(chain));
    wire_room = std::max(wire_room, codec->bytes_max(floats));
    measured.subjects.push_back({.codec = std::move(codec)});
  }
  const std::vector<float> values_N = normal_values(floats);
  std::vector<float> decoded_N(floats);
  std::vector<std::byte> wire_B(wire_room);
  for (int round = -1; round < kRounds; ++round) {  // the first touches memory for the first time
    double start_s = thread_cpu_s();
    std::memcpy(decoded_N.data(), values_N.data(), floats * sizeof(float));
    if (round >= 0) measured.copy_s.push_back(thread_cpu_s() - start_s);
    for (Subject& subject : measured.subjects) {
      start_s = thread_cpu_s();
      subject.wire_bytes = subject.codec->encode(values_N, wire_B);
      const double encoded_s = thread_cpu_s();
      MOTLEY_TRY(subject.codec->decode(std::span(wire_B).first(subject.wire_bytes), decoded_N));
      const double end_s = thread_cpu_s();
      if (round < 0) continue;
      subject.encode_s.push_back(encoded_s - start_s);
      subject.decode_s.push_back(end_s - encoded_s);
    }
  }
  return measured;
}

void print(std::size_t floats, const Measured& measured) {
  const double gigabytes = static_cast<double>(floats * sizeof(float)) / 1e9;
  const double copy_rate = gigabytes / median(measured.copy_s);
  fmt::print("{:.0f} MB of fp32; memcpy {:.2f} GB/s\n", gigabytes * 1e3, copy_rate);
  fmt::print("{:<14} {:>11} {:>12} {:>9} {:>12} {:>9}\n", "codec", "bytes/value", "encode GB/s",
             "of memcpy", "decode GB/s", "of memcpy");
  for (const Subject& subject : measured.subjects) {
    const double encode_rate = gigabytes / median(subject.encode_s);
    const double decode_rate = gigabytes / median(subject.decode_s);
    fmt::print("{:<14} {:>11.3f} {:>12.2f} {:>9.2f} {:>12.2f} {:>9.2f}\n", subject.codec->name(),
               static_cast<double>(subject.wire_bytes) / static_cast<double>(floats), encode_rate,
               encode_rate / copy_rate, decode_rate, decode_rate / copy_rate);
  }
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
    chains = {"none", "fp16",         "bf16",         "int8",
              "int4", "fp16|zstd(1)", "int8|zstd(1)", "int4|zstd(1)"};
  }
  const std::size_t floats = static_cast<std::size_t>(mebibytes) << 18;
  const Result<Measured> measured = measure(floats, chains);
  if (!measured.ok()) {
    fmt::print(stderr, "{}", describe(measured.error()));
    return 1;
  }
  print(floats, *measured);
  return 0;
}
