// Compares the results of a package's layer on this machine with those on the machine that exported
// it (models/package/reference/reference.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "base/result.h"
#include "models/package/reference/reference.h"

namespace motley {

// Runs the layer's graphs, forward, backward and in evaluation, on `device` with dtype `products`.
// kConfig if a result deviates from the reference, with the layer, the operation, the result, the
// deviation and a hint; also if this LibTorch lacks an operation. kCorrupt if the weights cannot be
// read. Throws if memory runs out. Takes as much memory as training this layer with the reference's
// samples in a micro-batch. `on_node` is called after each operation.
[[nodiscard]] Result<void> check_against_reference(std::shared_ptr<const Package> package,
                                                   const LayerReference& reference,
                                                   c10::Device device = c10::kCPU,
                                                   at::ScalarType products = at::kFloat,
                                                   const std::function<void()>& on_node = {});

// The comparison of one result.
struct ComparedResult {
  RoleIndex role;
  bool in_training = true;
  double deviation = 0;  // as returned by deviation()
  double allowed = 0;
  double norm = 0;
  double right_norm = 0;
};

// All results, matching or not. Fails and throws as check_against_reference, except for deviations.
[[nodiscard]] Result<std::vector<ComparedResult>> compare_with_reference(
    std::shared_ptr<const Package> package,
    const LayerReference& reference,
    c10::Device device = c10::kCPU,
    at::ScalarType products = at::kFloat);

// An estimate of the memory that it takes, in bytes.
[[nodiscard]] std::int64_t reference_check_bytes(const Package& package,
                                                 const LayerReference& reference);

// The largest accepted deviation() of a result from the reference's; derived in docs/numerics.md.
[[nodiscard]] double allowed_deviation(const ReferenceTensor& tensor, at::ScalarType products);

}  // namespace motley
