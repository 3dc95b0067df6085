#include "models/package/package_names.h"

#include <fmt/format.h>

namespace motley {

std::string PackageNames::add(const PackageLayer& layer) {
  if (!layers_.insert(layer.name).second) return "duplicate name";
  std::set<std::string> here;
  const auto twice = [](const std::string& name) {
    return fmt::format("duplicate name '{}'", excerpt(name));
  };
  for (const PackageParameter& parameter : layer.parameters) {
    if (!here.insert(parameter.name).second) return twice(parameter.name);
    const auto owner = owned_.find(parameter.name);
    if (parameter.tied) {
      if (owner == owned_.end() || owner->second.shape != parameter.shape ||
          owner->second.decayed != parameter.decayed) {
        return fmt::format("no earlier layer has its tied parameter '{}'", excerpt(parameter.name));
      }
      continue;
    }
    if (!tensors_.emplace(parameter.name, TensorSpec{Dtype::kFloat32, parameter.shape}).second) {
      return twice(parameter.name);
    }
    owned_.emplace(parameter.name, parameter);
  }
  for (const PackageStatistic& statistic : layer.statistics) {
    const TensorSpec tensor{Dtype::kFloat32, statistic.shape};
    if (!tensors_.emplace(statistic.name, tensor).second) return twice(statistic.name);
  }
  for (const PackageConstant& constant : layer.constants) {
    if (!here.insert(constant.name).second) return twice(constant.name);
    const auto [place, is_new] = tensors_.emplace(constant.name, constant.tensor);
    if (is_new) constants_.insert(constant.name);
    if (!constants_.contains(constant.name) || place->second != constant.tensor) {
      return twice(constant.name);
    }
  }
  return "";
}

std::map<std::string, TensorSpec> tensors_of(const Package& package) {
  PackageNames names;
  for (const PackageLayer& layer : package.layers) static_cast<void>(names.add(layer));
  return names.tensors();
}

}  // namespace motley
