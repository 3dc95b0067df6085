// GraphRunner: a graph of a package, prepared to run. Construction looks up each operation in this
// LibTorch and converts its arguments to the form of its schema, once. Running fills in tensors,
// calls the kernels without autograd, and releases each value after its last use.
//
// The same inputs give the same bits. Arguments are never written to. Used by one thread at a time.
// The caller holds c10::InferenceMode around run().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "base/result.h"
#include "models/graph/graph_draws.h"
#include "models/package/graph.h"

namespace motley {

class GraphRunner {
 public:
  // `where` begins errors: "layer 'h.0', forward". Everything lies on `device`. `products`: what
  // fp32 arguments of products and convolutions are rounded to; what they make is fp32 again.
  // kConfig when this LibTorch lacks an operation, or its arguments are not those of its schema.
  // REQUIRES: `graph` outlives it.
  [[nodiscard]] static Result<GraphRunner> make(const Graph& graph,
                                                std::string where,
                                                c10::Device device = c10::kCPU,
                                                at::ScalarType products = at::kFloat);

  GraphRunner(GraphRunner&&) noexcept;
  GraphRunner& operator=(GraphRunner&&) noexcept;
  ~GraphRunner();

  // `takes`: a tensor for each of graph().takes. Returns what the graph gives, in its order; the
  // tensors may be views of each other and of what was taken. `samples`: B of the micro-batch.
  // `draws` may be null if the graph draws no random numbers.
  // kConfig, naming layer, node and operation, when a kernel refuses its arguments, as where shapes
  // do not fit.
  [[nodiscard]] Result<std::vector<at::Tensor>> run(std::vector<at::Tensor> takes,
                                                    std::int64_t samples,
                                                    const GraphDraws* draws);

  // Called by run() after each node, with its number and all values that exist then, to compare the
  // kernels' results. Empty: no call.
  using Observer = std::function<void(std::size_t node, const std::vector<at::Tensor>& values)>;
  void observe(Observer observer);

  [[nodiscard]] const Graph& graph() const { return *graph_; }

 private:
  struct Impl;
  GraphRunner(const Graph& graph, std::unique_ptr<Impl> impl);

  const Graph* graph_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley
