// FarOperations: tests that operations give the same bits on the far device as on the processor.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/core/InferenceMode.h>

#include "tests/models/far_fixture.h"

namespace motley {

using Tensors = std::vector<at::Tensor>;

struct Operation {
  std::string name;
  Tensors inputs;  // on the host
  std::function<Tensors(const Tensors&)> run;
};

inline Tensors of(std::tuple<at::Tensor, at::Tensor, at::Tensor> results) {
  return {std::get<0>(results), std::get<1>(results), std::get<2>(results)};
}

class FarOperations : public FarDevice {
 protected:
  void expect_same(const std::vector<Operation>& operations) const {
    for (const Operation& operation : operations) {
      SCOPED_TRACE(operation.name);
      expect_same(operation);
      const c10::InferenceMode inference;
      expect_same(operation);
    }
  }

 private:
  void expect_same(const Operation& operation) const {
    Tensors there;
    Tensors here;
    for (const at::Tensor& input : operation.inputs) {
      here.push_back(input.clone());
      there.push_back(on_device(input));
    }
    const Tensors expected = operation.run(here);
    const Tensors computed = operation.run(there);
    ASSERT_EQ(computed.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(computed[i].device(), device_.torch()) << i;
      EXPECT_EQ(computed[i].strides(), expected[i].strides()) << i;
      EXPECT_TRUE(same_bits(computed[i].cpu(), expected[i])) << i;
    }
    // Changes of the inputs must be the same too.
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_TRUE(same_bits(there[i].cpu(), here[i])) << "input " << i;
    }
  }
};

}  // namespace motley
