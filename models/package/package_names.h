// The names of a package's tensors: each identifies one tensor. Private to models/package.
#pragma once

#include <map>
#include <set>
#include <string>

#include "models/package/package.h"

namespace motley {

class PackageNames {
 public:
  // Why this layer's names contradict those of earlier layers, or "". REQUIRES: layers are added in
  // order.
  [[nodiscard]] std::string add(const PackageLayer& layer);

  [[nodiscard]] const std::map<std::string, TensorSpec>& tensors() const { return tensors_; }

 private:
  std::set<std::string> layers_;
  std::map<std::string, TensorSpec> tensors_;      // all
  std::map<std::string, PackageParameter> owned_;  // parameters
  std::set<std::string> constants_;
};

// The tensors of the weights file, by name. REQUIRES: the package was read.
[[nodiscard]] std::map<std::string, TensorSpec> tensors_of(const Package& package);

}  // namespace motley
