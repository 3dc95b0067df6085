// Tensors of a boundary are equal after packing and unpacking.
#include "models/layers/boundary_layout.h"

#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "models/graph/scalar_type.h"
#include "tests/support/property.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

BoundarySpec random_spec() {
  const auto type =
      *rc::gen::element(Dtype::kFloat32, Dtype::kFloat32, Dtype::kInt64, Dtype::kBool);
  std::vector<std::int64_t> shape(*rc::gen::inRange<std::size_t>(0, 3));
  for (std::int64_t& size : shape) size = *rc::gen::inRange(1, 6);
  const bool gradient = type == Dtype::kFloat32 && *rc::gen::arbitrary<bool>();
  return BoundarySpec{{type, shape}, gradient};
}

at::Tensor some_values(const BoundarySpec& spec, std::int64_t samples, std::int64_t first) {
  const std::int64_t count = samples * spec.count();
  at::Tensor values = at::arange(first, first + count, at::kLong);
  if (spec.type == Dtype::kBool) values = values.remainder(3).eq(0);
  return values.to(scalar_type(spec.type)).view(spec.sizes(samples)).to(tested_device().torch());
}

LayerSpec layer_with(const std::vector<BoundarySpec>& specs) {
  LayerSpec layer;
  for (const BoundarySpec& spec : specs) {
    if (spec.gradient) {
      layer.outputs.push_back(spec.shape);
    } else {
      layer.exact_outputs.push_back(spec);
    }
  }
  return layer;
}

bool has_layout(const at::Tensor& tensor, const BoundaryLayout& layout) {
  return tensor.is_contiguous() && tensor.sizes() == at::IntArrayRef(layout.sizes) &&
         tensor.scalar_type() == layout.type;
}

RC_GTEST_PROP(BoundaryLayout, KeepsEveryTensorToTheBit, ()) {
  const c10::InferenceMode guard;
  const std::int64_t samples = *rc::gen::inRange(1, 5);
  std::vector<BoundarySpec> specs(*rc::gen::inRange<std::size_t>(1, 6));
  std::vector<at::Tensor> tensors;
  for (BoundarySpec& spec : specs) {
    spec = random_spec();
    at::Tensor tensor = some_values(spec, samples, static_cast<std::int64_t>(tensors.size()) + 1);
    // Also with the strides of a part of a larger tensor.
    if (*rc::gen::arbitrary<bool>()) tensor = at::stack({tensor, tensor}, -1).select(-1, 0);
    tensors.push_back(tensor);
  }
  const at::Tensor packed = pack_boundary(tensors, specs);
  RC_ASSERT(has_layout(packed, activation_layout(layer_with(specs), samples)));
  RC_ASSERT(packed.numel() == samples * elements_per_sample(specs));
  const std::vector<at::Tensor> unpacked = unpack_boundary(packed, specs, samples);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    RC_ASSERT(unpacked[k].scalar_type() == tensors[k].scalar_type());
    RC_ASSERT(at::equal(unpacked[k].cpu(), tensors[k].cpu()));
  }
  const at::Tensor gradient = pack_gradients(tensors, specs, tested_device().torch());
  RC_ASSERT(has_layout(gradient, gradient_layout(layer_with(specs), samples)));
  const std::vector<at::Tensor> gradients = unpack_gradients(gradient, specs, samples);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    RC_ASSERT(gradients[k].defined() == specs[k].gradient);
    if (specs[k].gradient) RC_ASSERT(at::equal(gradients[k].cpu(), tensors[k].cpu()));
  }
}

TEST(BoundaryLayout, HasTheFloatsFirstAndNoGaps) {
  const c10::InferenceMode guard;
  const std::vector<BoundarySpec> specs = {
      {{Dtype::kBool, {3}}, false}, {{Dtype::kFloat32, {2}}, true}, {{Dtype::kInt64, {1}}, false}};
  const at::Tensor packed = pack_boundary(
      {at::ones({1, 3}, at::kBool), at::zeros({1, 2}), at::full({1, 1}, 258, at::kLong)}, specs);
  const std::vector<std::uint8_t> expected = {0, 0, 0, 0, 0, 0, 0, 0,  // two floats
                                              1, 1, 1,                 // truth values
                                              2, 1, 0, 0, 0, 0, 0, 0};
  const auto* const bytes = packed.data_ptr<std::uint8_t>();
  EXPECT_EQ(std::vector<std::uint8_t>(bytes, bytes + packed.numel()), expected);
}

TEST(BoundaryLayout, OfOneTensorWithAGradientIsThatTensor) {
  const c10::InferenceMode guard;
  const at::Tensor x = at::ones({2, 3, 4});
  const at::Tensor packed = pack_boundary({x}, {{{Dtype::kFloat32, {3, 4}}, true}});
  EXPECT_EQ(packed.data_ptr(), x.data_ptr());
  EXPECT_EQ(packed.sizes(), x.sizes());
}

}  // namespace
}  // namespace motley::testing
