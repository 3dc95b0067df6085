// The properties of encoded values. An input is the number of a codec, the count of values in two
// bytes, and the bytes from a peer.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "compression/make_codec.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline constexpr std::size_t kMessageHead = 3;  // bytes before those of the peer

inline constexpr std::array kTopkChains = {"topk(0.1)", "topk(0.5)|fp16", "topk(0.1)|int8",
                                           "topk(0.1)|int8|zstd(1)"};
inline constexpr std::array kZstdChains = {"zstd(1)", "fp16|zstd(1)", "bf16|zstd(3)",
                                           "int8|zstd(1)", "int4|zstd(1)"};

// The codec of a valid chain.
inline std::unique_ptr<const Codec> codec_of(const char* chain) {
  auto codec = make_codec(chain);
  MOTLEY_CHECK(codec.ok(), "{}", describe(codec.error()));
  return std::move(codec).value();
}

using Codecs = std::vector<std::unique_ptr<const Codec>>;

template <std::size_t kCount>
Codecs codecs_of(const std::array<const char*, kCount>& chains) {
  Codecs codecs;
  for (const char* chain : chains) codecs.push_back(codec_of(chain));
  return codecs;
}

// `values` encoded by the codec chains[number].
template <std::size_t kCount>
std::string message_input(const std::array<const char*, kCount>& chains,
                          std::size_t number,
                          const std::vector<float>& values) {
  const auto codec = codec_of(chains.at(number));
  std::vector<std::byte> wire_B(codec->bytes_max(values.size()));
  wire_B.resize(codec->encode(values, wire_B));
  const auto count = static_cast<std::uint16_t>(values.size());
  std::string input(kMessageHead + wire_B.size(), static_cast<char>(number));
  std::memcpy(input.data() + 1, &count, sizeof count);
  std::memcpy(input.data() + kMessageHead, wire_B.data(), wire_B.size());
  return input;
}

inline bool same_values(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// Whether each value is encoded independently of its neighbours, so that decoded values are
// reproduced exactly.
inline bool keeps_values(const Codec& codec) {
  const std::string format = codec.name().substr(0, codec.name().find('|'));
  return format == "fp16" || format == "bf16" || format.starts_with("zstd");
}

inline std::string wrong_with_message(const Codec& codec,
                                      std::span<const std::byte> wire_B,
                                      std::size_t count) {
  std::vector<float> values(count, 1.0F);
  std::vector<float> sum(count);
  const auto read = codec.decode(wire_B, values);
  const auto added = codec.decode_add(wire_B, sum);
  if (read.ok() != added.ok()) return "read but not added, or added but not read";
  if (!read.ok()) return wrong_error(read.error(), {ErrorCode::kCorrupt}, " message");
  if (!same_values(values, sum)) return "added to nothing, and another value";
  if (!keeps_values(codec)) return "";
  std::vector<std::byte> again_B(codec.bytes_max(count));
  again_B.resize(codec.encode(values, again_B));
  std::vector<float> again(count);
  if (!codec.decode(again_B, again).ok()) return "written and refused";
  return same_values(values, again) ? "" : "written and read, and not the same";
}

inline std::string wrong_with_message(const Codecs& codecs, std::string_view input) {
  if (input.size() < kMessageHead) return "";
  std::uint16_t count = 0;
  std::memcpy(&count, input.data() + 1, sizeof count);
  const Codec& codec = *codecs[static_cast<unsigned char>(input[0]) % codecs.size()];
  return wrong_with_message(codec, std::as_bytes(std::span(input.substr(kMessageHead))), count);
}

}  // namespace motley
