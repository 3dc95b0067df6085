// The far device computes the same bits as the processor.
#include "tests/models/far_operations.h"

namespace motley {
namespace {

TEST_F(FarOperations, Elementwise) {
  const Tensors two = {values({4, 6}), values({6})};
  expect_same({
      {"add", two, [](const Tensors& x) { return Tensors{x[0] + x[1]}; }},
      {"numbers", two,
       [](const Tensors& x) {
         return Tensors{x[0] * 3 - 0.25, 1.0 / x[1]};
       }},
      {"exp", two,
       [](const Tensors& x) {
         return Tensors{x[0].exp(), at::tanh(x[1])};
       }},
      {"gelu", two, [](const Tensors& x) { return Tensors{at::gelu(x[0], "tanh")}; }},
      {"in place", two, [](const Tensors& x) { return Tensors{x[0].add_(x[1], 0.5).mul_(2)}; }},
      {"itself", two, [](const Tensors& x) { return Tensors{x[0].add_(x[0])}; }},
      {"where", two, [](const Tensors& x) { return Tensors{at::where(x[0] > 0, x[0], x[1])}; }},
      {"type", two,
       [](const Tensors& x) { return Tensors{x[0].to(at::kBFloat16).to(at::kFloat)}; }},
      {"lerp", two, [](const Tensors& x) { return Tensors{x[0].lerp_(x[0] * 2, 0.1)}; }},
      {"addcdiv", two,
       [](const Tensors& x) { return Tensors{x[0].addcdiv_(x[1], x[1] + 2, -0.1)}; }},
      {"dropout mask", two, [](const Tensors& x) { return Tensors{x[0] * (x[0] > 0.1) / 0.9}; }},
  });
}

TEST_F(FarOperations, Products) {
  const Tensors two = {values({7, 6}), values({6, 5}), values({5})};
  const Tensors batches = {values({3, 4, 6}), values({3, 6, 5})};
  expect_same({
      {"mm", two, [](const Tensors& x) { return Tensors{at::mm(x[0], x[1])}; }},
      {"mm of a view", two, [](const Tensors& x) { return Tensors{at::mm(x[1].t(), x[0].t())}; }},
      {"addmm", two, [](const Tensors& x) { return Tensors{at::addmm(x[2], x[0], x[1], 1, 2)}; }},
      {"linear", two, [](const Tensors& x) { return Tensors{at::linear(x[0], x[1].t(), x[2])}; }},
      {"bmm", batches, [](const Tensors& x) { return Tensors{at::bmm(x[0], x[1])}; }},
      {"matmul", batches, [](const Tensors& x) { return Tensors{at::matmul(x[0], x[1])}; }},
      {"out", two,
       [](const Tensors& x) {
         at::Tensor out = at::empty({0}, x[0].options());
         at::mm_out(out, x[0], x[1]);
         at::Tensor part = at::zeros({9, 5}, x[0].options());
         at::Tensor rows = part.slice(0, 1, 8);
         at::mm_out(rows, x[0], x[1]);
         return Tensors{out, part};
       }},
  });
}

TEST_F(FarOperations, Views) {
  const Tensors one = {values({4, 3, 6})};
  expect_same({
      {"slice", one,
       [](const Tensors& x) {
         return Tensors{x[0].slice(1, 1, 3), x[0][2]};
       }},
      {"view", one,
       [](const Tensors& x) {
         return Tensors{x[0].view({12, 6}), x[0].view(-1)};
       }},
      {"transpose", one,
       [](const Tensors& x) {
         return Tensors{x[0].transpose(0, 2), x[0].permute({1, 0, 2}).contiguous()};
       }},
      {"reshape", one,
       [](const Tensors& x) {
         return Tensors{x[0].transpose(0, 1).reshape({3, 24})};
       }},
      {"expand", one,
       [](const Tensors& x) {
         return Tensors{x[0][0].unsqueeze(0).expand({2, 3, 6}) + 1};
       }},
      {"split", one, [](const Tensors& x) { return x[0].split(2, 2); }},
      {"chunk of chunk", one, [](const Tensors& x) { return x[0].chunk(3, 1)[1].unbind(0); }},
      {"as_strided", one,
       [](const Tensors& x) {
         return Tensors{x[0].as_strided({3, 2}, {1, 7}, 5)};
       }},
      {"cat", one,
       [](const Tensors& x) {
         return Tensors{at::cat({x[0], x[0] * 2}, 1)};
       }},
      {"in place on views", one,
       [](const Tensors& x) {
         x[0].slice(1, 1, 3).mul_(2);
         x[0].transpose(0, 2).select(0, 1).add_(1);
         x[0].view(-1).slice(0, 3, 30, 4).zero_();
         x[0][3].copy_(x[0][0]);
         return Tensors{x[0].select(2, 5)};
       }},
      {"set_", one,
       [](const Tensors& x) {
         at::Tensor other = at::empty({0}, x[0].options());
         other.set_(x[0].storage(), 6, {2, 3}, {3, 1});
         other.mul_(3);
         at::Tensor same = at::empty({0}, x[0].options()).set_(x[0]);
         return Tensors{other, same};
       }},
      {"resize_", one,
       [](const Tensors& x) {
         at::Tensor grown = x[0][1].clone();
         grown.resize_({6, 6}).slice(0, 3).fill_(7);
         return Tensors{grown};
       }},
  });
}

TEST_F(FarOperations, ReductionsAndChoices) {
  const Tensors one = {values({5, 33})};
  const Tensors table = {values({10, 6}), at::arange(8, at::kLong).mul_(7).remainder_(10)};
  expect_same({
      {"sum", one,
       [](const Tensors& x) {
         return Tensors{x[0].sum(), x[0].sum(1), x[0].mean(0, true)};
       }},
      {"max", one,
       [](const Tensors& x) {
         const auto [most, where] = x[0].max(1);
         return Tensors{most, where, x[0].argmax(0), x[0].amax()};
       }},
      {"norm", one,
       [](const Tensors& x) {
         return Tensors{x[0].norm(), x[0].pow(2).sum()};
       }},
      {"topk", one,
       [](const Tensors& x) {
         const auto [most, where] = x[0].topk(4);
         return Tensors{most, where};
       }},
      {"cumsum", one, [](const Tensors& x) { return Tensors{x[0].cumsum(1)}; }},
      {"index_select", table, [](const Tensors& x) { return Tensors{x[0].index_select(0, x[1])}; }},
      {"embedding", table,
       [](const Tensors& x) {
         const at::Tensor found = at::embedding(x[0], x[1].view({2, 4}));
         return Tensors{found,
                        at::embedding_dense_backward(found, x[1].view({2, 4}), 10, -1, false)};
       }},
      {"index_add_", table,
       [](const Tensors& x) { return Tensors{x[0].index_add_(0, x[1], x[0].slice(0, 0, 8) * 2)}; }},
      {"gather", table,
       [](const Tensors& x) {
         return Tensors{x[0].gather(0, x[1].view({8, 1}))};
       }},
      {"mask", one, [](const Tensors& x) { return Tensors{x[0].masked_select(x[0] > 0)}; }},
      {"made there", one,
       [](const Tensors& x) {
         return Tensors{at::arange(5, x[0].options()), at::ones_like(x[0]),
                        at::eye(3, x[0].options()), at::ones({4, 4}, x[0].options()).tril()};
       }},
  });
}

TEST_F(FarOperations, AutogradWorksThere) {
  const at::Tensor here = values({4, 6}).set_requires_grad(true);
  const at::Tensor there = on_device(values({4, 6})).set_requires_grad(true);
  for (const at::Tensor& x : {here, there}) at::softmax(x.t().mm(x), 1).pow(2).sum().backward();
  EXPECT_TRUE(same_bits(there.grad().cpu(), here.grad()));
}

TEST_F(FarOperations, ATensorOfTheHostAmongThemIsRefused) {
  EXPECT_THROW(on_device(values({3})) + values({3}), c10::Error);
  const ComputeDevice second = open_far_device("privateuseone:1");
  EXPECT_THROW(on_device(values({3})) + values({3}).to(second.torch()), c10::Error);
  device_.make_current();
}

TEST_F(FarOperations, OperationsAndWaitsAreCounted) {
  const at::Tensor there = on_device(values({4, 6}));
  motley_far_reset_counters();
  const at::Tensor sum = there.view({6, 4}).t().add(1).sum();
  EXPECT_EQ(counters().operations, 2U);  // views compute nothing
  EXPECT_EQ(counters().host_waits, 0U);
  EXPECT_EQ(sum.item<float>(), (values({4, 6}).view({6, 4}).t() + 1).sum().item<float>());
  EXPECT_EQ(counters().host_waits, 1U);
  const at::Tensor host = there.cpu();
  EXPECT_EQ(counters().host_waits, 2U);
  EXPECT_EQ(counters().copies_from_device, 1U);
  EXPECT_EQ(counters().bytes_from_device, 96U);
}

}  // namespace
}  // namespace motley
