// HostViews: the tensors of one operation as the processor may have them: the same bytes at their
// hidden addresses. What the processor answers becomes the device's again.
//
// A view that it makes of an argument becomes a view of the device's tensor, an argument that it
// answers becomes that argument, and what it made itself is copied into new memory of the device.
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

  // The processor's tensor for an argument. Throws for one that a device cannot be given: of the
  // host, unless it is a single number, or of another device.
  [[nodiscard]] at::Tensor of(const at::Tensor& argument, Use use);
  // What makes tensors is told where.
  void set_device(int device);

  // The device's tensor for a result.
  [[nodiscard]] at::Tensor back(const at::Tensor& result);
  // Arguments that the operation gave other sizes or other memory get them on the device too.
  void carry_changes_back();

  [[nodiscard]] const std::vector<Touch>& touches() const { return touches_; }

  [[nodiscard]] bool has_device() const { return device_.has_value(); }

  // The stream that the operation is given to. REQUIRES: has_device().
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
    void* hidden = nullptr;  // where `host` began
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
