// HostViews: the tensors of one operation as the processor sees them: the same bytes at their
// hidden addresses. Results are converted back to tensors of the device.
//
// A result that is a view of an argument becomes a view of the device's tensor, a result that is
// an argument becomes that argument, and a newly allocated one is copied into new memory of the
// device.
#pragma once

#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tests/support/far/far_state.h"
#include "tests/support/far/torch_versions.h"

namespace motley::far {

enum class Use { kShape, kReads, kWrites };

class HostViews {
 public:
  explicit HostViews(const char* operation) : operation_(operation) {}

  // The processor's tensor for an argument. Throws for one that is invalid on a device: a host
  // tensor, unless it is a single number, or a tensor of another device.
  [[nodiscard]] at::Tensor of(const at::Tensor& argument, Use use);
  // Sets the device of a factory operation.
  void set_device(int device);

  // The device's tensor for a result.
  [[nodiscard]] at::Tensor back(const at::Tensor& result);
  // Applies the operation's changes of sizes and storage to the device's tensors.
  void carry_changes_back();

  [[nodiscard]] const std::vector<Touch>& touches() const { return touches_; }

  [[nodiscard]] bool has_device() const { return device_.has_value(); }

  // The stream that the operation is submitted to. REQUIRES: has_device().
  [[nodiscard]] StreamNumber stream() const;

 private:
  struct Pair {
    at::Tensor far;
    at::Tensor host;
    bool written = false;
  };

  struct Storages {
    c10::Storage far;
    c10::Storage host;
    void* hidden = nullptr;  // where `host` originally pointed
  };

  [[nodiscard]] Storages& storages_of(const at::Tensor& far);
  [[nodiscard]] Pair& pair_of(const at::Tensor& far);
  [[nodiscard]] at::Tensor view_of(const Pair& base, const at::Tensor& result) const;
  [[nodiscard]] at::Tensor copied(const at::Tensor& result);
  void carry_back(const Pair& pair);
  void move_storage(Storages& storages);

  const char* const operation_;
  Optional<int> device_;
  std::vector<Touch> touches_;
  std::vector<Pair> pairs_;
  std::vector<Storages> storages_;
};

}  // namespace motley::far
