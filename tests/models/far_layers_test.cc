// The operations that layers consist of, on the far device and on the processor.
#include "tests/models/far_operations.h"

namespace motley {
namespace {

using FarLayers = FarOperations;

TEST_F(FarLayers, LayersForwardAndBackward) {
  const Tensors scores = {values({3, 4, 9}), values({3, 4, 9}).mul(0.5)};
  const Tensors rows = {values({5, 8}), values({8}), values({8}) * 2};
  const Tensors picture = {values({2, 3, 8, 8}), values({4, 3, 3, 3}), values({4})};
  expect_same({
      {"softmax", scores,
       [](const Tensors& x) {
         const at::Tensor y = at::softmax(x[0], -1);
         const at::Tensor z = at::log_softmax(x[0], -1);
         return Tensors{y, at::_softmax_backward_data(x[1], y, -1, at::kFloat), z,
                        at::_log_softmax_backward_data(x[1], z, -1, at::kFloat)};
       }},
      {"layer_norm", rows,
       [](const Tensors& x) {
         Tensors y = of(at::native_layer_norm(x[0], {8}, x[1], x[2], 1e-5));
         for (at::Tensor& gradient : of(at::native_layer_norm_backward(
                  x[0] + 1, x[0], {8}, y[1], y[2], x[1], x[2], {true, true, true}))) {
           y.push_back(gradient);
         }
         return y;
       }},
      {"convolution", picture,
       [](const Tensors& x) {
         const at::Tensor y = at::conv2d(x[0], x[1], x[2], 1, 1);
         Tensors all =
             of(at::convolution_backward(y * 0.1, x[0], x[1], at::IntArrayRef({4}), {1, 1}, {1, 1},
                                         {1, 1}, false, {0, 0}, 1, {true, true, true}));
         all.push_back(y);
         return all;
       }},
      {"batch_norm", picture,
       [](const Tensors& x) {
         const at::Tensor mean = at::zeros({3}, x[0].options());
         const at::Tensor variance = at::ones({3}, x[0].options());
         Tensors y = of(at::native_batch_norm(x[0], {}, {}, mean, variance, true, 0.1, 1e-5));
         const auto back = of(at::native_batch_norm_backward(
             x[0] * 0.3, x[0], {}, mean, variance, y[1], y[2], true, 1e-5, {true, false, false}));
         return Tensors{y[0], y[1], y[2], back[0], mean, variance};
       }},
      {"pooling", picture,
       [](const Tensors& x) {
         return Tensors{at::max_pool2d(x[0], 2), at::adaptive_avg_pool2d(x[0], {2, 2})};
       }},
      {"gelu backward", rows,
       [](const Tensors& x) { return Tensors{at::gelu_backward(x[0], x[0] * 2, "tanh")}; }},
  });
}

TEST_F(FarLayers, AttentionLossesAndLists) {
  const Tensors heads = {values({2, 3, 5, 4}), values({2, 3, 5, 4}) * 0.5,
                         values({2, 3, 5, 4}) + 1};
  const Tensors logits = {values({6, 9}), at::arange(6, at::kLong)};
  const Tensors lists = {values({7}), values({3, 4}), values({2, 2}) * 2};
  expect_same({
      {"attention", heads,
       [](const Tensors& x) {
         const at::Tensor mask = at::ones({5, 5}, x[0].options().dtype(at::kBool)).tril();
         const at::Tensor scores = at::matmul(x[0], x[1].transpose(-2, -1)) * 0.5;
         return Tensors{
             at::softmax(scores.masked_fill(mask.logical_not(), -1e30), -1).matmul(x[2])};
       }},
      {"cross entropy", logits,
       [](const Tensors& x) {
         return Tensors{at::cross_entropy_loss(x[0], x[1]), at::nll_loss(x[0], x[1], {}, 2, 3)};
       }},
      {"scatter", logits,
       [](const Tensors& x) {
         x[0].scatter_(1, x[1].view({6, 1}), 5);
         return Tensors{x[0].index({x[1]}),
                        x[0].index_put_({x[1]}, at::zeros({9}, x[0].options()))};
       }},
      {"lists", lists,
       [](const Tensors& x) {
         at::_foreach_mul_(x, 0.5);
         at::_foreach_addcmul_(x, x, x, 2);
         Tensors norms = at::_foreach_norm(x);
         norms.push_back(at::stack(norms).norm());
         return norms;
       }},
  });
}

}  // namespace
}  // namespace motley
