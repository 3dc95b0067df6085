// Codecs as operations on the tested device compared with the codecs themselves.
#include "training/device_formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "compression/make_codec.h"
#include "tests/support/property.h"
#include "tests/support/tested_device.h"

namespace motley {
namespace {

const c10::Device kSomeDevice(c10::DeviceType::PrivateUse1, 0);

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

at::Tensor on_device(const Floats& values) {
  return at::tensor(values).to(tested_device().torch());
}

Bytes on_host(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().contiguous();
  const auto* const first = static_cast<const std::byte*>(host.data_ptr());
  return {first, first + host.nbytes()};
}

// All NaNs compare as equal: devices produce other bits.
std::vector<std::uint32_t> meaning_of(const float* values, std::size_t count) {
  std::vector<std::uint32_t> bits;
  for (std::size_t i = 0; i < count; ++i) {
    bits.push_back(std::isnan(values[i]) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(values[i]));
  }
  return bits;
}

void expect_the_codecs(const std::string& name, const Floats& values) {
  const c10::InferenceMode no_recording;
  const auto codec = make_codec(name).value();
  Bytes expected(codec->bytes_max(values.size()));
  expected.resize(codec->encode(values, expected));
  Floats decoded(values.size());
  ASSERT_TRUE(codec->decode(expected, decoded).ok());

  const DeviceFormat& format = *find_device_format(name, kSomeDevice);
  const at::Tensor message = format.encode(on_device(values));
  ASSERT_EQ(on_host(message), expected);
  const at::Tensor bytes = message.view(at::kByte);
  const at::Tensor back = format.decode(bytes, static_cast<std::int64_t>(values.size())).cpu();
  ASSERT_EQ(back.sizes(), at::IntArrayRef(static_cast<std::int64_t>(values.size())));
  EXPECT_EQ(meaning_of(back.data_ptr<float>(), values.size()),
            meaning_of(decoded.data(), values.size()));
}

// Values near rounding boundaries, the largest values and NaNs of the formats.
Floats edges() {
  Floats values = {
      0.0F,        -0.0F,       65504.0F,        65519.98F,       65520.0F,    -70000.0F,
      0x1p-24F,    0x1p-25F,    0x1.8p-25F,      0x1p-14F,        -0x1p-126F,  0x1p-149F,
      INFINITY,    -INFINITY,   0x1.FEp127F,     0x1.FEFFFEp127F, 0x1.FFp127F, -0x1.FFFFFEp127F,
      1.00390625F, 1.01171875F, 1.0F + 0x1p-11F, 1.0F + 0x3p-11F, NAN,         -NAN};
  for (const std::uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FA12345U, 0xFFFFFFFFU, 0x7F802000U,
                                   0x7F810000U, 0x7F7F7FFFU, 0x7F7F8000U, 0x7F7F8001U}) {
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

class DeviceFormats : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, DeviceFormats, testing::Values("fp16", "bf16", "int8"));

TEST_P(DeviceFormats, MakeTheCodecsBytesOfEveryKindOfValue) {
  expect_the_codecs(GetParam(), edges());
  // Each alone too: a non-finite value hides the rest of its block.
  for (const float value : edges()) expect_the_codecs(GetParam(), {value, 0.5F, -3.0F});
}

TEST_P(DeviceFormats, MakeTheCodecsBytesAtEveryLength) {
  for (const std::size_t count : {1U, 2U, 127U, 128U, 129U, 256U, 1000U}) {
    Floats values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(0.7F * static_cast<float>(i));
    expect_the_codecs(GetParam(), values);
  }
}

RC_GTEST_PROP(DeviceFormatsOfAny, MakeTheCodecsBytes, (const std::vector<std::uint32_t>& words)) {
  RC_PRE(!words.empty());
  // Arbitrary bits, and the same bits as values near 1, so that blocks are encoded.
  Floats any;
  Floats finite;
  for (const std::uint32_t word : words) {
    const std::uint32_t mixed = word * 0x9E3779B1U;  // RapidCheck starts with small numbers
    any.push_back(std::bit_cast<float>(mixed));
    finite.push_back(std::bit_cast<float>((mixed & 0x83FFFFFFU) | 0x3C000000U));
  }
  for (const char* const name : {"fp16", "bf16", "int8"}) {
    expect_the_codecs(name, any);
    expect_the_codecs(name, finite);
  }
}

TEST(FindDeviceFormat, LeavesTheRestToTheProcessor) {
  for (const char* const name : {"none", "int4", "fp16|zstd(1)", "topk(0.01)|fp16"}) {
    EXPECT_EQ(find_device_format(name, kSomeDevice), nullptr) << name;
  }
  EXPECT_EQ(find_device_format("fp16", c10::Device(c10::kCPU)), nullptr);
  EXPECT_EQ(find_device_format("fp16", c10::Device(c10::DeviceType::MPS)), nullptr);
}

}  // namespace
}  // namespace motley
