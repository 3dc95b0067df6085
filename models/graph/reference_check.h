// Compares what a layer of a package computes on this machine with what it computed where it was
// exported (models/package/reference/reference.h).
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

// Runs the layer's graphs, forward, backward and in evaluation, on `device` with its numbers of
// products. kConfig when a result is not the reference's, with the layer, the operation, which
// result, how far off, and what to do; also when this LibTorch lacks an operation. kCorrupt when
// the weights cannot be read. Throws where memory runs out. Takes as much memory as training this
// layer with the reference's samples in a micro-batch. `on_node` is called after each operation.
[[nodiscard]] Result<void> check_against_reference(std::shared_ptr<const Package> package,
                                                   const LayerReference& reference,
                                                   c10::Device device = c10::kCPU,
                                                   at::ScalarType products = at::kFloat,
                                                   const std::function<void()>& on_node = {});

// A result beside the reference's.
struct ComparedResult {
  RoleIndex role;
  bool in_training = true;
  double deviation = 0;  // as deviation() says
  double allowed = 0;
  double norm = 0;
  double right_norm = 0;
};

// All of them, whatever they are. Fails and throws as check_against_reference but for results.
[[nodiscard]] Result<std::vector<ComparedResult>> compare_with_reference(
    std::shared_ptr<const Package> package,
    const LayerReference& reference,
    c10::Device device = c10::kCPU,
    at::ScalarType products = at::kFloat);

// About the bytes that it takes.
[[nodiscard]] std::int64_t reference_check_bytes(const Package& package,
                                                 const LayerReference& reference);

// How far a result may be from the reference's, as deviation() says; docs/numerics.md tells why.
[[nodiscard]] double allowed_deviation(const ReferenceTensor& tensor, at::ScalarType products);

}  // namespace motley
