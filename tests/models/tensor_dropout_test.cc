// Dropout of tensors on any device compared with the kernel: the same bits.
#include "models/layers/tensor_dropout.h"

#include <gtest/gtest.h>

#include "device_chain.h"

namespace motley::testing {
namespace {

DropoutStream stream() {
  // Both words of the key and of the counter have their highest bit set.
  const MicroContext micro{.seed = -7, .step = 0xF0000001, .micro = 0x80000003};
  return {0.3, micro, 5, DropoutSite::kProbabilities};
}

// The kernel's result for the rows of x, the first of which is row `first_row`.
at::Tensor by_kernel(const at::Tensor& x, std::int64_t first_row) {
  at::Tensor y = at::empty_like(x);
  const std::int64_t columns = x.size(1);
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    stream().apply(x.data_ptr<float>() + row * columns, y.data_ptr<float>() + row * columns,
                   columns, (first_row + row) * DropoutStream::tiles(columns));
  }
  return y;
}

TEST(TensorDropout, HasTheKernelsBits) {
  const c10::InferenceMode guard;
  constexpr std::int64_t kMoreThanASlice = (std::int64_t{1} << 22) + 777;
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{63}, std::int64_t{64},
                                   std::int64_t{65}, std::int64_t{1000}, kMoreThanASlice}) {
    const at::Tensor x = some_floats({count}, 4);
    const at::Tensor y = x.to(tested_device().torch()).clone();
    drop_in_place(stream(), y);
    EXPECT_TRUE(y.cpu().equal(by_kernel(x.view({1, count}), 0).view({count}))) << count;
  }
}

TEST(TensorDropout, BeginsATileWithEachRow) {
  const c10::InferenceMode guard;
  for (const std::int64_t columns : {1, 19, 64, 300}) {
    const at::Tensor x = some_floats({7, columns}, 4);
    const at::Tensor y = x.to(tested_device().torch()).clone();
    const at::Tensor z = y * 2;
    drop_rows_in_place(stream(), {y, z}, 50000000);
    EXPECT_TRUE(y.cpu().equal(by_kernel(x, 50000000))) << columns;
    EXPECT_TRUE(z.equal(y * 2)) << columns;
  }
}

}  // namespace
}  // namespace motley::testing
