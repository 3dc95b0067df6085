// Every operation that a package may use is a function, as this LibTorch's dispatcher tells it.
#include "models/package/operations.h"

#include <set>

#include <gtest/gtest.h>

#include <ATen/core/dispatch/Dispatcher.h>

namespace motley {
namespace {

// Of versions after 1.13.
const std::set<std::string_view> kLater = {"aten::_batch_norm_no_update",
                                           "aten::_batch_norm_with_update_functional",
                                           "aten::_fused_rms_norm",
                                           "aten::_fused_rms_norm_backward",
                                           "aten::_native_batch_norm_legit.no_stats",
                                           "aten::_native_batch_norm_legit_functional",
                                           "aten::_native_batch_norm_legit_no_training",
                                           "aten::_prelu_kernel",
                                           "aten::_prelu_kernel_backward",
                                           "aten::_safe_softmax",
                                           "aten::batch_norm_backward",
                                           "aten::squeeze.dims"};

bool makes_tensors(const c10::FunctionSchema& schema) {
  if (schema.returns().empty()) return false;
  for (const c10::Argument& result : schema.returns()) {
    const bool is_list = *result.type() == *c10::ListType::ofTensors();
    if (result.type()->kind() != c10::TypeKind::TensorType && !is_list) return false;
  }
  return true;
}

TEST(AllowedOperations, AreFunctionsOfThisLibTorchOrOfALaterOne) {
  std::size_t known = 0;
  for (const std::string_view operation : allowed_operations()) {
    const std::size_t dot = operation.find('.');
    const std::string overload(dot == operation.npos ? "" : operation.substr(dot + 1));
    const auto found =
        c10::Dispatcher::singleton().findSchema({std::string(operation.substr(0, dot)), overload});
    if (!found) {
      EXPECT_TRUE(kLater.contains(operation)) << operation << " is unknown to this LibTorch";
      continue;
    }
    ++known;
    const c10::FunctionSchema& schema = found->schema();
    EXPECT_FALSE(schema.is_mutable()) << schema;
    EXPECT_TRUE(makes_tensors(schema)) << schema;
    for (const c10::Argument& argument : schema.arguments()) {
      EXPECT_EQ(argument.type()->str().find("Generator"), std::string::npos) << schema;
    }
  }
  EXPECT_GT(known, 300U);
}

TEST(AllowedOperations, AreNotOthers) {
  for (const char* operation :
       {"aten::add_.Tensor", "aten::add.out", "aten::rand", "aten::bernoulli",
        "aten::native_dropout", "aten::empty.memory_format", "aten::as_strided",
        "aten::_reshape_alias", "aten::item", "aten::nonzero", "aten::from_file",
        "aten::set_.source_Storage", "aten::mm.out", "aten::", "mm", "aten::m", "aten::mmm", ""}) {
    EXPECT_FALSE(find_operation(operation)) << operation;
  }
  EXPECT_EQ(find_operation("aten::mm"), "aten::mm");
}

}  // namespace
}  // namespace motley
