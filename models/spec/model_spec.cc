#include "models/spec/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/hash.h"
#include "models/package/package.h"
#include "models/package/reference/reference.h"

namespace motley {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t sum_of_constants(const std::vector<LayerSpec>& layers,
                              std::int64_t ConstantSpec::*member) {
  std::set<std::string_view> seen;
  std::int64_t sum = 0;
  for (const LayerSpec& layer : layers) {
    for (const ConstantSpec& constant : layer.constants) {
      if (seen.insert(constant.name).second) sum += constant.*member;
    }
  }
  return sum;
}

}  // namespace

std::int64_t ParameterSpec::count() const {
  return product(shape);
}

std::int64_t LayerSpec::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterSpec& parameter : parameters) count += parameter.count();
  return count;
}

std::int64_t LayerSpec::constant_bytes() const {
  std::int64_t bytes = 0;
  for (const ConstantSpec& constant : constants) bytes += constant.bytes;
  return bytes;
}

BoundarySize LayerSpec::boundary(std::int64_t samples) const {
  BoundarySize size;
  for (const std::vector<std::int64_t>& shape : outputs) size.floats += samples * product(shape);
  for (const TensorSpec& exact : exact_outputs) size.exact_bytes += samples * exact.bytes();
  return size;
}

std::vector<std::string> ModelSpec::layer_names() const {
  std::vector<std::string> names;
  for (const LayerSpec& layer : layers) names.push_back(layer.name);
  return names;
}

bool ModelSpec::keeps_statistics() const {
  return std::ranges::any_of(layers, [](const LayerSpec& layer) {
    return std::ranges::any_of(layer.parameters, [](const ParameterSpec& parameter) {
      return parameter.statistic_momentum.has_value();
    });
  });
}

std::optional<FolderFingerprint> ModelSpec::package_fingerprint() const {
  if (package == nullptr) return {};
  return package->fingerprint();
}

Result<std::string> ModelSpec::missing_references() const {
  if (package == nullptr) return std::string();
  return motley::missing_references(*package);
}

std::int64_t ModelSpec::parameter_count() const {
  std::int64_t count = 0;
  for (const LayerSpec& layer : layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied_use) count += parameter.count();
    }
  }
  return count;
}

std::int64_t ModelSpec::constant_values() const {
  return sum_of_constants(layers, &ConstantSpec::values);
}

std::int64_t ModelSpec::constant_bytes() const {
  return sum_of_constants(layers, &ConstantSpec::bytes);
}

std::string ModelSpec::hash() const {
  Hasher128 hasher;
  hasher.add(family);
  for (const LayerSpec& layer : layers) {
    hasher.add(fmt::format("\n{} {} {}", layer.name, layer.kind, layer.heads));
    // The structure of the native families follows from the other hashed values.
    if (package != nullptr) hasher.add(" " + layer.signature);
    for (const ParameterSpec& parameter : layer.parameters) {
      hasher.add(fmt::format("\n {}{}", parameter.name, parameter.tied_use ? " tied" : ""));
      for (const std::int64_t size : parameter.shape) hasher.add(fmt::format(" {}", size));
    }
  }
  return hasher.hex();
}

std::optional<ModelSpec::TiedPair> ModelSpec::tied_pair() const {
  const auto owner_of = [&](const std::string& name, int before) {
    for (int layer = 0; layer < before; ++layer) {
      for (const ParameterSpec& parameter : layers[static_cast<std::size_t>(layer)].parameters) {
        if (parameter.name == name) return layer;
      }
    }
    MOTLEY_CHECK(false, "tied parameter {} has no owner before layer {}", name, before);
  };
  for (int user = 0; user < static_cast<int>(layers.size()); ++user) {
    for (const ParameterSpec& parameter : layers[static_cast<std::size_t>(user)].parameters) {
      if (parameter.tied_use) return TiedPair{owner_of(parameter.name, user), user, parameter.name};
    }
  }
  return std::nullopt;
}

}  // namespace motley
