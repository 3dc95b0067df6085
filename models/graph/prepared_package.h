// PreparedPackage: what the layers of a package share in a process: graphs that are ready to run,
// one for all equal layers, and constants, read once. Threads: one at a time, as its graphs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "models/graph/graph_runner.h"
#include "models/package/package.h"

namespace motley {

class PreparedPackage {
 public:
  struct LayerRunners {
    GraphRunner forward;
    GraphRunner input_part;
    GraphRunner weight_part;
    GraphRunner evaluate;
    std::optional<GraphRunner> score;
  };

  // For the layers [first, last). kConfig when this LibTorch lacks an operation of theirs, kCorrupt
  // when their constants cannot be read. Constants are copied to `device`, where the graphs run.
  // `products`: as of GraphRunner. REQUIRES: 0 <= first <= last <= layers.
  [[nodiscard]] static Result<std::shared_ptr<PreparedPackage>> prepare(
      std::shared_ptr<const Package> package,
      int first,
      int last,
      c10::Device device = c10::kCPU,
      at::ScalarType products = at::kFloat);

  [[nodiscard]] const Package& package() const { return *package_; }

  [[nodiscard]] c10::Device device() const { return device_; }

  // REQUIRES: `layer` is one of those that were prepared.
  [[nodiscard]] LayerRunners& runners(int layer);
  [[nodiscard]] std::vector<at::Tensor> constants(int layer) const;

 private:
  PreparedPackage(std::shared_ptr<const Package> package,
                  c10::Device device,
                  at::ScalarType products);

  [[nodiscard]] Result<void> prepare_layer(const PackageLayer& layer);
  [[nodiscard]] Result<void> read_constants(int first, int last);

  std::shared_ptr<const Package> package_;
  c10::Device device_;
  at::ScalarType products_;
  std::map<int, LayerRunners> runners_;          // [graph]
  std::map<std::string, at::Tensor> constants_;  // by name
};

}  // namespace motley
