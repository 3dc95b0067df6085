#include "compression/kernels/non_temporal.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "compression/codec/codec.h"
#include "compression/formats/dense_formats.h"
#include "compression/formats/quantised_formats.h"
#include "tests/compression/slices.h"

namespace motley {
namespace {

Bytes counted_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST(NonTemporal, CopiesEveryLengthToEveryPlaceAndNothingElse) {
  const Bytes from = counted_bytes(330);
  for (std::size_t offset = 0; offset < 65; ++offset) {
    for (std::size_t length = 0; length + 1 < from.size(); ++length) {
      Bytes to(offset + length + 1, std::byte{0xA5});
      copy_non_temporal(std::span(from).subspan(1, length), to.data() + offset);
      fence_non_temporal();
      for (std::size_t i = 0; i < offset; ++i) ASSERT_EQ(to[i], std::byte{0xA5});
      ASSERT_EQ(to.back(), std::byte{0xA5});
      for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(to[offset + i], from[1 + i]);
    }
  }
}

// A slice whose message and values are both larger than the caches, compared with its format's
// kernels.
TEST(NonTemporal, ChangesNothingOfALargeMessage) {
  const std::size_t count = kNonTemporalBytes / 2 + 3 * 128 + 5;
  const Floats values = normal_slice(count);
  for (const FixedSizeFormat& format : {fp16_format(), int8_format(), int4_format()}) {
    const auto codec = make_fixed_size_codec(format);
    Bytes wire(codec->bytes_max(count));
    ASSERT_EQ(codec->encode(values, wire), wire.size());
    Bytes expected_wire(wire.size());
    format.encode(values, expected_wire.data());
    ASSERT_TRUE(wire == expected_wire) << format.name;
    Floats back(count);
    ASSERT_TRUE(codec->decode(wire, back).ok());
    Floats expected(count);
    format.decode(wire.data(), expected);
    ASSERT_TRUE(back == expected) << format.name;
  }
}

}  // namespace
}  // namespace motley
