// Fixtures for the tests of conversions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/convert/tensor_writer.h"
#include "checkpoint/work_observer.h"
#include "tests/checkpoint/fixture.h"

namespace motley::testing {

// Permits this number of pieces, then stops the work.
class Allowance final : public WorkObserver {
 public:
  explicit Allowance(int pieces = std::numeric_limits<int>::max()) : left_(pieces) {}

  void begin(const char* /*what*/, std::uint64_t /*bytes_total*/) override {}

  [[nodiscard]] Result<void> advance(std::uint64_t /*bytes*/) override {
    if (left_-- > 0) return {};
    return Error{ErrorCode::kInterrupted, "interrupted", "", ""};
  }

 private:
  int left_;
};

class ListedValues final : public ValueStream {
 public:
  explicit ListedValues(std::vector<float> values) : values_(std::move(values)) {}

  [[nodiscard]] Result<void> next(std::span<float> values) override {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(done_), values.size(),
                values.begin());
    done_ += values.size();
    return {};
  }

 private:
  std::vector<float> values_;
  std::size_t done_ = 0;
};

inline std::vector<NewTensor> new_tensors(const std::vector<OwnedTensor>& tensors) {
  std::vector<NewTensor> list;
  for (const OwnedTensor& tensor : tensors) {
    list.push_back({tensor.name, tensor.shape,
                    [values = tensor.values] { return std::make_unique<ListedValues>(values); }});
  }
  return list;
}

}  // namespace motley::testing
