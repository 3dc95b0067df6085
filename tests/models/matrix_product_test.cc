// product and its variants compared with ATen in fp64, for sizes that are no multiples of any
// block size.
#include "models/kernels/matrix_product.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <rapidcheck/gtest.h>

namespace motley {
namespace {

struct Case {
  at::Tensor a;
  at::Tensor b;  // may be the transpose of a contiguous matrix
  at::Tensor exact;
  double bound;  // of the error of one element
};

Case make_case() {
  const auto size = [] {
    return *rc::gen::weightedOneOf<std::int64_t>({{4, rc::gen::inRange<std::int64_t>(1, 70)},
                                                  {1, rc::gen::inRange<std::int64_t>(70, 600)},
                                                  {1, rc::gen::element<std::int64_t>(1024, 1536)}});
  };
  const std::int64_t rows = size();
  const std::int64_t inner = size();
  const std::int64_t columns = size();
  at::manual_seed(*rc::gen::inRange<std::uint64_t>(0, 1000));
  Case made;
  made.a = at::randn({rows, inner});
  made.b =
      *rc::gen::arbitrary<bool>() ? at::randn({columns, inner}).t() : at::randn({inner, columns});
  made.exact = at::mm(made.a.to(at::kDouble), made.b.to(at::kDouble));
  // The error of a sum of K rounded products is at most (K + 1) 2^-24 of the sum of their
  // magnitudes.
  made.bound = at::mm(made.a.abs(), made.b.abs()).max().item<double>() *
               (static_cast<double>(inner) + 2.0) * 0x1p-24;
  return made;
}

double error(const at::Tensor& value, const at::Tensor& exact) {
  return (value.to(at::kDouble) - exact).abs().max().item<double>();
}

RC_GTEST_PROP(MatrixProduct, IsThatOfBinary64WithinItsRounding, ()) {
  const Case made = make_case();
  const at::Tensor value = product(made.a, made.b);
  RC_ASSERT(error(value, made.exact) <= made.bound);

  at::Tensor out = at::full_like(value, 7.0);
  product_into(out, made.a, made.b);
  RC_ASSERT(at::equal(out, value));
}

RC_GTEST_PROP(MatrixProduct, IsAddedToWhatIsThere, ()) {
  const Case made = make_case();
  at::Tensor sum = at::randn(made.exact.sizes());
  const at::Tensor exact = made.exact + sum;
  const double largest = sum.abs().max().item<double>();
  add_product(sum, made.a, made.b);
  RC_ASSERT(error(sum, exact) <= made.bound + largest * 0x1p-22);
}

// The result for the same rows depends neither on earlier computations nor on their addresses.
RC_GTEST_PROP(MatrixProduct, HasTheSameBitsEachTime, ()) {
  const Case made = make_case();
  const at::Tensor first = product(made.a, made.b);
  // The BLAS of a wheel depends on the operands' alignment within 64 bytes, which is the same for
  // all parameters (models/layers/parameter_memory.h).
  constexpr std::int64_t kMoved = MOTLEY_TORCH_BRINGS_ITS_OWN ? 16 : 3;
  at::Tensor padded = at::empty({made.a.numel() + kMoved});
  at::Tensor moved = padded.narrow(0, kMoved, made.a.numel()).view_as(made.a);
  moved.copy_(made.a);
  RC_ASSERT(at::equal(product(moved, made.b), first));
}

}  // namespace
}  // namespace motley
