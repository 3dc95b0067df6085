#include "models/kernels/onednn_product.h"

#include <compare>
#include <cstdint>
#include <map>

#include <ATen/ATen.h>

#include "base/check.h"

#include <dnnl.hpp>

namespace motley {
namespace {

struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
  bool transposed;  // column-major
  bool is_bf16;

  explicit Matrix(const at::Tensor& x)
      : rows(x.size(0)),
        columns(x.size(1)),
        transposed(!x.is_contiguous()),
        is_bf16(x.scalar_type() == at::kBFloat16) {
    MOTLEY_CHECK(x.dim() == 2 && (is_bf16 || x.scalar_type() == at::kFloat) &&
                     (!transposed || x.t().is_contiguous()),
                 "a product takes fp32 or bf16 matrices that are contiguous or transposes of such");
  }

  dnnl::memory::desc description() const {
    using dnnl::memory;
    return {{rows, columns},
            is_bf16 ? memory::data_type::bf16 : memory::data_type::f32,
            transposed ? memory::format_tag::ba : memory::format_tag::ab};
  }

  auto operator<=>(const Matrix&) const = default;
};

struct Sizes {
  Matrix a;
  Matrix b;
  bool adds;

  auto operator<=>(const Sizes&) const = default;
};

const dnnl::engine& processor() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// The compiled product of one size. Its scratch memory comes from ATen, so that it is counted.
class Product {
 public:
  Product(const Sizes& sizes, const dnnl::memory::desc& out)
      : a_(sizes.a.description()), b_(sizes.b.description()), out_(out) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (sizes.adds) {
      dnnl::post_ops after;
      after.append_sum(1.0f);
      attributes.set_post_ops(after);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(processor(), a_, b_, out_, attributes);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a_, b_, out_), attributes,
                                                   processor());
#endif
    scratch_ = description.scratchpad_desc();
    compiled_ = dnnl::matmul(description);
  }

  void run(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) const {
    const at::Tensor scratch =
        at::empty({static_cast<std::int64_t>(scratch_.get_size())}, at::TensorOptions(at::kByte));
    const auto bound = [](const dnnl::memory::desc& description, void* data) {
      return dnnl::memory(description, processor(), data);
    };
    dnnl::stream stream(processor());
    compiled_.execute(stream, {{DNNL_ARG_SRC, bound(a_, a.data_ptr())},
                               {DNNL_ARG_WEIGHTS, bound(b_, b.data_ptr())},
                               {DNNL_ARG_DST, bound(out_, out.data_ptr())},
                               {DNNL_ARG_SCRATCHPAD, bound(scratch_, scratch.data_ptr())}});
    stream.wait();
  }

 private:
  dnnl::memory::desc a_;
  dnnl::memory::desc b_;
  dnnl::memory::desc out_;
  dnnl::memory::desc scratch_;
  dnnl::matmul compiled_;
};

}  // namespace

bool onednn_is_fast(const at::Tensor& b) {
  constexpr std::int64_t kShortRow = 512;
  constexpr std::int64_t kCopiedRow = 1024;
  return !b.is_contiguous() || b.size(1) <= kShortRow || b.size(1) % kCopiedRow == 0;
}

void onednn_multiply(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  const Sizes sizes{Matrix(a), Matrix(b), adds};
  const Matrix result(out);
  MOTLEY_CHECK(sizes.a.columns == sizes.b.rows && result.rows == sizes.a.rows &&
                   result.columns == sizes.b.columns && !result.transposed,
               "a product of {} x {} and {} x {} into {} x {}", sizes.a.rows, sizes.a.columns,
               sizes.b.rows, sizes.b.columns, result.rows, result.columns);
  MOTLEY_CHECK(sizes.a.is_bf16 == sizes.b.is_bf16 && !result.is_bf16,
               "a product has factors of one type and is fp32");
  // Per thread, since a compiled product is valid for the number of threads it was made with.
  thread_local std::map<Sizes, Product> compiled;
  auto found = compiled.find(sizes);
  if (found == compiled.end()) {
    found = compiled.try_emplace(sizes, sizes, result.description()).first;
  }
  found->second.run(out, a, b);
}

}  // namespace motley
