// Every operation that a package may use is a pure function, according to this LibTorch's
// dispatcher.
#include "models/package/operations.h"

#include <gtest/gtest.h>

#include <ATen/core/dispatch/Dispatcher.h>

namespace motley {
namespace {

bool makes_tensors(const c10::FunctionSchema& schema) {
  if (schema.returns().empty()) return false;
  for (const c10::Argument& result : schema.returns()) {
    const bool is_list = *result.type() == *c10::ListType::ofTensors();
    if (result.type()->kind() != c10::TypeKind::TensorType && !is_list) return false;
  }
  return true;
}

TEST(AllowedOperations, AreFunctionsOfThisLibTorch) {
  for (const std::string_view operation : allowed_operations()) {
    const std::size_t dot = operation.find('.');
    const std::string overload(dot == operation.npos ? "" : operation.substr(dot + 1));
    const auto found =
        c10::Dispatcher::singleton().findSchema({std::string(operation.substr(0, dot)), overload});
    ASSERT_TRUE(found) << operation << " is unknown to this LibTorch";
    const c10::FunctionSchema& schema = found->schema();
    EXPECT_FALSE(schema.is_mutable()) << schema;
    EXPECT_TRUE(makes_tensors(schema)) << schema;
    for (const c10::Argument& argument : schema.arguments()) {
      EXPECT_EQ(argument.type()->str().find("Generator"), std::string::npos) << schema;
    }
  }
  EXPECT_GT(allowed_operations().size(), 300U);
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
