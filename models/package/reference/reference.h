// References: the results of a package's distinct layers, computed in the exporter's PyTorch by
// eager execution and autograd in fp32, to which machines compare their own. They are stored beside
// the package (docs/formats/package.md, "The reference"). They contain no tensors, only the
// definition of the inputs and a digest of each result. Untrusted, as the package itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/package/graph.h"
#include "models/package/package.h"
#include "models/package/reference/hashed_values.h"
#include "models/package/reference/tensor_digest.h"

namespace motley {

struct ReferenceTensor {
  RoleIndex role;
  TensorDigest digest;
  // The effect of rounding, as returned by deviation(): of every result by a few units in the last
  // place, and of products to bf16.
  double moved_fp32 = 0;
  double moved_bf16 = 0;
};

struct LayerReference {
  int layer = 0;  // the first layer with its signature
  std::uint64_t seed = 0;
  std::int64_t samples = 0;
  std::vector<ValuePieces> inputs;
  ValuePieces target;  // of the last layer
  // Values that replace those of the weights, if all elements there are equal.
  std::vector<std::pair<RoleIndex, UniformValues>> replaced;
  std::vector<ReferenceTensor> training;    // loss or outputs, observed, gradients of inputs and of
                                            // parameters, in this order
  std::vector<ReferenceTensor> evaluation;  // outputs; of the last layer score, loss and count
};

struct PackageReferences {
  std::string hash;  // of the file
  std::vector<LayerReference> layers;

  // The reference of the layers that compute the same as this one; nullptr if there is none.
  [[nodiscard]] const LayerReference* find(const Package& package, int layer) const;
};

inline constexpr const char* kReferenceFileName = "reference.jsonl";

// The references in the package's folder; nullopt if there is no such file. kCorrupt if it is
// damaged, or belongs to another package.json.
[[nodiscard]] Result<std::optional<PackageReferences>> read_references(const Package& package);

// The same for the file's contents; `source` names it in errors.
[[nodiscard]] Result<PackageReferences> parse_references(std::string_view text,
                                                         const Package& package,
                                                         const std::string& source);

// A warning about layers without a reference, which cannot be compared; "" if all have one. Fails
// as read_references.
[[nodiscard]] Result<std::string> missing_references(const Package& package);

}  // namespace motley
