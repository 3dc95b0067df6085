// The bytes of a topk message: the first chooses the format of the values, two more the count of
// values, and the rest is what a peer sent.
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "compression/codec.h"

namespace motley {
namespace {

const Codec& codec_of(unsigned choice) {
  static const auto codecs = [] {
    std::array<std::unique_ptr<const Codec>, 4> all;
    const char* chains[] = {"topk(0.1)", "topk(0.5)|fp16", "topk(0.1)|int8",
                            "topk(0.1)|int8|zstd(1)"};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::move(make_codec(chains[i])).value();
    return all;
  }();
  return *codecs[choice % codecs.size()];
}

// Reading twice gives the same, and adding to zeros gives what reading gives.
void check_message(const Codec& codec, std::span<const std::byte> wire_B, std::size_t count) {
  std::vector<float> values(count, 1.0F);
  std::vector<float> sum(count);
  const auto read = codec.decode(wire_B, values);
  const auto added = codec.decode_add(wire_B, sum);
  MOTLEY_CHECK(read.ok() == added.ok(), "read {}, added {}", read.ok(), added.ok());
  if (!read.ok()) {
    MOTLEY_CHECK(read.error().code == ErrorCode::kCorrupt, "{}", describe(read.error()));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const bool both_nan = values[i] != values[i] && sum[i] != sum[i];
    MOTLEY_CHECK(both_nan || values[i] == sum[i], "value {}: {} and {}", i, values[i], sum[i]);
  }
}

}  // namespace
}  // namespace motley

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size < 3) return 0;
  std::uint16_t count = 0;
  std::memcpy(&count, data + 1, sizeof count);
  const auto message_B = std::as_bytes(std::span(data + 3, size - 3));
  motley::check_message(motley::codec_of(static_cast<unsigned char>(*data)), message_B, count);
  return 0;
}
