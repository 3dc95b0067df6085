// The result of an operation does not depend on the memory layout of its arguments. Every
// operation that a package may use is called as from a graph, with arguments in many layouts, and
// compared with the same call on contiguous copies.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "models/graph/graph_runner.h"
#include "models/graph/rounded_product.h"
#include "models/package/operations.h"
#include "tests/models/bf16_sums.h"
#include "tests/models/operation_cases.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

// The distance of two results relative to the largest element, or to 1 if that is larger: smaller
// results may be rounding noise. Infinite if one is not finite and the other differs.
double distance_between(const at::Tensor& found, const at::Tensor& right) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (found.sizes() != right.sizes() || found.scalar_type() != right.scalar_type())
    return kInfinite;
  if (found.numel() == 0) return 0;
  const at::Tensor a = found.cpu().contiguous();
  const at::Tensor b = right.cpu().contiguous();
  if (!a.is_floating_point()) return at::equal(a, b) ? 0 : kInfinite;
  const at::Tensor finite = at::isfinite(b);
  const at::Tensor zeros = at::zeros({}, a.options());
  const at::Tensor odd_a = at::where(finite, zeros, a);
  const at::Tensor odd_b = at::where(finite, zeros, b);
  const bool same_odd = at::eq(odd_a, odd_b)
                            .logical_or(at::isnan(odd_a).logical_and(at::isnan(odd_b)))
                            .all()
                            .item<bool>();
  if (!same_odd) return kInfinite;
  const double apart = at::where(finite, a - b, zeros).abs().max().item<double>();
  const double largest = at::where(finite, b, zeros).abs().max().item<double>();
  return apart / std::max(largest, 1.0);
}

double distance_between(const Tensors& found, const Tensors& right) {
  double largest = 0;
  for (std::size_t k = 0; k < right.size(); ++k) {
    const double distance = distance_between(found[k], right[k]);
    if (!(distance <= largest)) largest = distance;
  }
  return largest;
}

class Battery {
 public:
  // In other layouts results may be added in another order: at most `tolerance` apart.
  Battery(at::ScalarType products, double tolerance)
      : device_(tested_device().torch()), products_(products), tolerance_(tolerance) {}

  // Fails if the product differs from that in fp32.
  void compare_with_fp32(const OperationCase& call) const {
    auto made = GraphRunner::make(call.graph, call.name, device_, products_);
    auto exact = GraphRunner::make(call.graph, call.name, device_);
    ASSERT_TRUE(made.ok() && exact.ok()) << call.name;
    const auto found = made->run(tensors_of(call), /*samples=*/1, {});
    ASSERT_TRUE(found.ok()) << describe(found.error());
    const auto right = exact->run(tensors_of(call), /*samples=*/1, {});
    ASSERT_TRUE(right.ok()) << describe(right.error());
    EXPECT_LE(distance_between(*found, *right), tolerance_) << call.name;
  }

  // Fails if a layout changes the result of the operation.
  void try_all_layouts(const OperationCase& call) {
    const Tensors tensors = tensors_of(call);
    auto made = GraphRunner::make(call.graph, call.name, device_, products_);
    ASSERT_TRUE(made.ok()) << call.name << ": " << describe(made.error());
    for (const LayoutVariant& variant : layout_variants(call, tensors)) {
      const std::string fault = fault_of(*made, variant.tensors);
      if (!fault.empty()) ADD_FAILURE() << call.name << ", " << variant.name << ": " << fault;
      ++calls_;
    }
  }

  [[nodiscard]] std::int64_t calls() const { return calls_; }

 private:
  [[nodiscard]] Tensors tensors_of(const OperationCase& call) const {
    Tensors tensors;
    for (std::size_t k = 0; k < call.tensors.size(); ++k) {
      tensors.push_back(make_case_tensor(call.tensors[k], static_cast<int>(k)).to(device_));
    }
    return tensors;
  }

  std::string fault_of(GraphRunner& runner, const Tensors& tensors) const {
    Tensors copies;
    for (const at::Tensor& tensor : tensors) {
      copies.push_back(tensor.clone(at::MemoryFormat::Contiguous));
    }
    const auto right = runner.run(copies, /*samples=*/1, {});
    if (!right.ok()) return "refused even if contiguous: " + describe(right.error());
    const auto found = runner.run(tensors, /*samples=*/1, {});
    if (!found.ok()) return "refused: " + describe(found.error());
    const double distance = distance_between(*found, *right);
    return distance <= tolerance_ ? "" : fmt::format("{:.2g} of the largest element off", distance);
  }

  c10::Device device_;
  at::ScalarType products_;
  double tolerance_;
  std::int64_t calls_ = 0;
};

// Large enough for kernels that use several threads or vectors. The far device computes with the
// same kernels and skips these cases.
bool is_large(const OperationCase& call) {
  constexpr std::int64_t kLarge = 10'000;
  for (const std::string& tensor : call.tensors) {
    if (make_case_tensor(tensor, 0).numel() > kLarge) return true;
  }
  return false;
}

TEST(OperationLayouts, HaveACaseForEveryOperation) {
  std::set<std::string, std::less<>> tried;
  for (const OperationCase& call : read_operation_cases()) tried.insert(call.operation);
  for (const std::string_view operation : allowed_operations()) {
    EXPECT_TRUE(tried.contains(operation))
        << operation << " has no case in tests/models/operations";
  }
}

TEST(OperationLayouts, DoNotChangeResults) {
  const c10::InferenceMode inference;
  Battery battery(at::kFloat, 1e-4);
  const bool is_host = tested_device().is_host();
  for (const OperationCase& call : read_operation_cases()) {
    if (is_host || !is_large(call)) battery.try_all_layouts(call);
  }
  EXPECT_GT(battery.calls(), 10'000);
}

TEST(OperationLayouts, DoNotChangeRoundedProducts) {
  if (!bf16_sums_are_wide()) {
    GTEST_SKIP() << "LibTorch adds up products of bf16 in bf16 on this processor";
  }
  const c10::InferenceMode inference;
  std::vector<at::ScalarType> numbers = {at::kBFloat16};
  if (!tested_device().is_host())
    numbers.push_back(at::kHalf);  // LibTorch has no fp16 products
                                   // on the processor
  for (const at::ScalarType products : numbers) {
    Battery battery(products, 0.05);
    for (const OperationCase& call : read_operation_cases()) {
      if (!is_product(call.operation) || is_large(call)) continue;
      battery.compare_with_fp32(call);
      battery.try_all_layouts(call);
    }
    EXPECT_GT(battery.calls(), 100);
  }
}

}  // namespace
}  // namespace motley::testing
