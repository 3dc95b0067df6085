#include "models/device/tensor_memory.h"

#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "base/system/system_memory.h"
#include "models/device/kinds/library_exception.h"

namespace motley {
namespace {

class TensorMemory : public testing::Test {
 protected:
  TensorMemory() {
    keep_freed_memory();
    reuse_tensor_memory();
  }
};

TEST_F(TensorMemory, IsAligned) {
  for (const std::int64_t floats : {1, 3, 1000, 4096, 1'000'003}) {
    const at::Tensor tensor = at::ones({floats});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0U) << floats;
    EXPECT_EQ(tensor.sum().item<double>(), static_cast<double>(floats));
  }
}

TEST_F(TensorMemory, OfNoValueIsNone) {
  EXPECT_EQ(at::empty({0}).data_ptr(), nullptr);
}

TEST_F(TensorMemory, IsGivenBackWhoeverSharesIt) {
  at::Tensor tensor = at::arange(1000, at::kFloat);
  const at::Tensor part = tensor.narrow(0, 500, 10);
  tensor = at::Tensor();
  EXPECT_EQ(part.sum().item<float>(), 5045);
}

// A sanitizer's allocator delays the reuse of freed memory, and does not accept this size.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(TensorMemory, ServesTheNextTensorOfItsSize) {
  constexpr std::int64_t kFloats = 2'097'152;
  at::Tensor tensor = at::empty({kFloats});
  // The neighbouring blocks stay allocated, so that the freed block is not merged.
  std::vector<at::Tensor> neighbours = {at::empty({1000})};
  for (int i = 0; i < 8; ++i) {
    const void* const place = tensor.data_ptr();
    tensor = at::Tensor();
    tensor = at::empty({kFloats});
    EXPECT_EQ(tensor.data_ptr(), place) << i;
    neighbours.push_back(at::empty({1000}));
  }
}

TEST_F(TensorMemory, ThatIsNotThereIsToldAsMissing) {
  try {
    at::empty({std::numeric_limits<std::int64_t>::max() / 8}, at::kFloat);
    FAIL() << "so much memory was there";
  } catch (const std::exception& thrown) {
    EXPECT_TRUE(is_out_of_memory(thrown)) << thrown.what();
  }
}
#endif

}  // namespace
}  // namespace motley
