// Transfers of boundary tensors between the layers' device, the host and messages, on the device
// that the tests use.
#include "training/boundary_tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "compression/make_codec.h"
#include "models/device/host_floats.h"
#include "tests/support/tested_device.h"

namespace motley {
namespace {

constexpr std::int64_t kSamples = 3;

// An odd number of exact bytes after 18 floats.
LayerSpec mixed_layer() {
  LayerSpec layer;
  layer.outputs = {{3, 2}};
  layer.exact_outputs = {{Dtype::kBool, {5}}, {Dtype::kInt64, {2}}, {Dtype::kFloat32, {4}}};
  return layer;
}

LayerSpec without_gradient() {
  LayerSpec layer = mixed_layer();
  layer.outputs.clear();
  return layer;
}

// Arbitrary exact bytes after ordinary floats.
std::vector<std::byte> some_bytes(const BoundaryLayout& layout) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.sizes.front()));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  for (std::int64_t i = 0; i < layout.floats; ++i) {
    const float value = 0.3F * static_cast<float>(i) - 2;
    std::memcpy(&bytes[static_cast<std::size_t>(i) * sizeof value], &value, sizeof value);
  }
  return bytes;
}

std::vector<std::byte> bytes_on_host(const at::Tensor& tensor) {
  const at::Tensor here = tensor.cpu().contiguous();
  const std::span<std::byte> bytes = bytes_of(here);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> joined(const OwnedBoundary& made) {
  const auto floats = std::as_bytes(made.values);
  std::vector<std::byte> bytes(floats.begin(), floats.end());
  bytes.insert(bytes.end(), made.exact.begin(), made.exact.end());
  return bytes;
}

class BoundaryTensorsOf : public testing::TestWithParam<bool> {
 protected:
  BoundaryTensorsOf() {
    at::Tensor host = at::empty(layout_.sizes, layout_.type);
    std::ranges::copy(bytes_, bytes_of(host).begin());
    made_ = tensors_.from_layers(host.to(tested_device().torch()), layout_.floats);
  }

  c10::InferenceMode guard_;
  const LayerSpec layer_ = GetParam() ? mixed_layer() : without_gradient();
  const BoundaryLayout layout_ = activation_layout(layer_, kSamples);
  const std::vector<std::byte> bytes_ = some_bytes(layout_);
  BoundaryTensors tensors_{tested_device()};
  OwnedBoundary made_;
};

TEST_P(BoundaryTensorsOf, ReachOtherLayersOfTheRank) {
  const at::Tensor handed = tensors_.hand_over(made_, layout_);
  EXPECT_EQ(handed.scalar_type(), at::kByte);
  EXPECT_EQ(bytes_on_host(tensors_.to_layers({handed, nullptr, layout_})), bytes_);
}

TEST_P(BoundaryTensorsOf, ReachTheHostAndComeFromIt) {
  const OwnedBoundary host = tensors_.to_host(made_);
  ASSERT_TRUE(host.await("an activation").ok());
  EXPECT_EQ(static_cast<std::int64_t>(host.values.size()), layout_.floats);
  EXPECT_EQ(joined(host), bytes_);
  const at::Tensor place = tensors_.receive_buffer(layout_.sizes, layout_.type);
  const BoundaryBuffer receive_buffer = BoundaryTensors::parts_of(place, layout_);
  std::ranges::copy(host.values, receive_buffer.floats.begin());
  std::ranges::copy(host.exact, receive_buffer.exact.begin());
  EXPECT_EQ(bytes_on_host(tensors_.to_layers({place, nullptr, layout_})), bytes_);
}

TEST_P(BoundaryTensorsOf, ArePartsOfMessagesThatADeviceMakesAndReads) {
  for (const char* name : {"fp16", "bf16", "int8"}) {
    const DeviceFormat* const format = tensors_.format_of(name);
    if (format == nullptr) continue;  // only the host implements the codec
    SCOPED_TRACE(name);
    const auto codec = make_codec(name).value();
    const auto float_bytes = static_cast<std::size_t>(layout_.floats) * sizeof(float);
    std::vector<float> floats(static_cast<std::size_t>(layout_.floats));
    std::memcpy(floats.data(), bytes_.data(), float_bytes);
    std::vector<std::byte> expected(codec->bytes_max(floats.size()));
    codec->encode(floats, expected);
    EXPECT_TRUE(codec->decode(expected, floats).ok());
    expected.insert(expected.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(float_bytes),
                    bytes_.end());

    const OwnedBytes message = tensors_.to_host(made_, *format);
    ASSERT_TRUE(message.await("an activation").ok());
    EXPECT_EQ(std::vector(message.values.begin(), message.values.end()), expected);

    Arrival arrival = tensors_.message_buffer(*format, expected.size(), layout_);
    std::ranges::copy(expected, bytes_of(arrival.tensor).begin());
    std::vector<std::byte> rounded = bytes_;
    std::memcpy(rounded.data(), floats.data(), float_bytes);
    EXPECT_EQ(bytes_on_host(tensors_.to_layers(std::move(arrival))), rounded);
  }
}

INSTANTIATE_TEST_SUITE_P(BoundaryTensors, BoundaryTensorsOf, testing::Bool(), [](const auto& one) {
  return one.param ? "WithAGradient" : "WithoutAGradient";
});

// Words of samples become the blocks that the first layer unpacks: a float after an odd number of
// bytes too.
TEST(BoundaryTensors, PackTheInputsOfSamples) {
  const c10::InferenceMode guard;
  const std::vector<SampleInput> inputs = {{"mask", {Dtype::kBool, {3}}, {}},
                                           {"ids", {Dtype::kInt64, {2}}, 9},
                                           {"pixels", {Dtype::kFloat32, {1, 2}}, {}}};
  const auto bits = [](float value) { return std::bit_cast<std::int32_t>(value); };
  const std::vector<std::int32_t> words = {1, 0, 1, 5,  -6, bits(0.5F),  bits(-2),
                                           0, 0, 1, 70, 8,  bits(1e-9F), bits(3)};
  BoundaryTensors tensors(tested_device());
  const at::Tensor packed =
      tensors.to_layers({tensors.buffer_with_values(words, inputs, /*samples=*/2), nullptr, {}})
          .cpu();
  std::vector<BoundarySpec> specs;
  for (const SampleInput& input : inputs) specs.push_back({input.tensor, /*gradient=*/false});
  const std::vector<at::Tensor> found = unpack_boundary(packed, specs, 2);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_TRUE(at::equal(found[0], at::tensor({1, 0, 1, 0, 0, 1}, at::kLong).view({2, 3}).ne(0)));
  EXPECT_TRUE(at::equal(found[1], at::tensor({5, -6, 70, 8}, at::kLong).view({2, 2})));
  EXPECT_TRUE(at::equal(found[2], at::tensor({0.5F, -2.0F, 1e-9F, 3.0F}).view({2, 1, 2})));
  const at::Tensor one = tensors.buffer_with_values(std::span(words).subspan(3, 2),
                                                    {{"ids", {Dtype::kInt64, {2}}, 9}}, 1);
  EXPECT_TRUE(at::equal(one, at::tensor({5, -6}, at::kLong).view({1, 2})));
}

}  // namespace
}  // namespace motley
