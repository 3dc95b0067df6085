#include "worker/check/layer_checks.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/system/system_memory.h"
#include "models/device/kinds/library_exception.h"
#include "models/device/product_type.h"
#include "models/graph/reference_check.h"
#include "models/package/reference/reference.h"
#include "profiling/cache/check_store.h"
#include "worker/check/profile_key.h"

namespace motley {
namespace {

void say_of_check(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

std::int64_t free_bytes(const ComputeDevice& device) {
  const auto own = device.memory();
  return own ? own->free_bytes : available_memory_bytes();
}

// One reference for each signature of these layers that is not among `right`.
std::vector<const LayerReference*> still_to_compare(const PackageReferences& references,
                                                    const Package& package,
                                                    const std::set<int>& layers,
                                                    const std::set<std::string>& right) {
  std::set<std::string> seen = right;
  std::vector<const LayerReference*> wanted;
  for (const int layer : layers) {
    if (!seen.insert(package.layers[static_cast<std::size_t>(layer)].signature).second) continue;
    const LayerReference* const reference = references.find(package, layer);
    if (reference != nullptr) wanted.push_back(reference);
  }
  return wanted;
}

class LayerComparer {
 public:
  LayerComparer(const Job& job,
                std::shared_ptr<const Package> package,
                const ComputeDevice& device,
                const std::function<void(const std::string& what)>& progress)
      : package_(std::move(package)),
        device_(device),
        products_(product_type(device, job.config.train.precision)),
        progress_(progress) {}

  // True if the layer was compared and is right; false if it could not be compared.
  Result<bool> compare(const LayerReference& reference) {
    const PackageLayer& layer = package_->layers[static_cast<std::size_t>(reference.layer)];
    const std::string what =
        fmt::format("comparison of layer {} with its reference", excerpt(layer.name));
    progress_(what);
    const std::int64_t free = free_bytes(device_);
    if (free > 0 && reference_check_bytes(*package_, reference) > free) return left_out(what);
    try {
      MOTLEY_TRY(check_against_reference(package_, reference, device_.torch(), products_,
                                         [&] { progress_(what); }));
    } catch (const std::exception& thrown) {
      if (!is_out_of_memory(thrown)) throw;
      return left_out(what);
    }
    return true;
  }

 private:
  Result<bool> left_out(const std::string& what) {
    say_of_check(
        fmt::format("{} is not compared: {} has too little memory for it", what, device_.name()));
    return false;
  }

  std::shared_ptr<const Package> package_;
  const ComputeDevice& device_;
  at::ScalarType products_;
  const std::function<void(const std::string& what)>& progress_;
};

}  // namespace

std::set<int> all_layers(const ModelSpec& model) {
  std::set<int> layers;
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) layers.insert(l);
  return layers;
}

Result<void> check_layers(const Job& job,
                          const ModelSpec& model,
                          const std::set<int>& layers,
                          const ComputeDevice& device,
                          const std::function<void(const std::string& what)>& progress) {
  if (model.package == nullptr) return {};
  const Package& package = *model.package;
  MOTLEY_ASSIGN(const auto references, read_references(package));
  if (!references) {
    say_of_check(fmt::format("{} has no {}: its layers are not compared on this machine",
                             package.folder.string(), kReferenceFileName));
    return {};
  }
  const CheckStore store(profile_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")));
  const CheckKey key = check_key(profile_key(job, model, device), package.sha256, references->hash);
  std::set<std::string> right = store.find(key);
  const auto wanted = still_to_compare(*references, package, layers, right);
  if (wanted.empty()) return {};
  LayerComparer comparer(job, model.package, device, progress);
  for (const LayerReference* const reference : wanted) {
    MOTLEY_ASSIGN(const bool is_right, comparer.compare(*reference));
    if (is_right)
      right.insert(package.layers[static_cast<std::size_t>(reference->layer)].signature);
  }
  release_freed_memory();
  right.merge(store.find(key));  // recorded meanwhile by other ranks of this machine
  const Result<void> kept = store.put(key, right);
  if (!kept.ok()) {
    say_of_check(fmt::format("the result of the comparison was not stored: {}: {}",
                             kept.error().what, kept.error().cause));
  }
  return {};
}

}  // namespace motley
