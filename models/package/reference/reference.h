// References: what the distinct layers of a package compute in the exporter's PyTorch, by eager
// PyTorch and its autograd in fp32, for machines to compare themselves with. They lie beside the
// package (docs/formats/package.md, "The reference") and hold no tensors, but what inputs are made
// from and what is kept of each result. A stranger's bytes, as the package itself.
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
  // By how much rounding moves it, as deviation() says: of every result by a few units in the last
  // place, and of products to bf16.
  double moved_fp32 = 0;
  double moved_bf16 = 0;
};

struct LayerReference {
  int layer = 0;  // the first of those with its signature
  std::uint64_t seed = 0;
  std::int64_t samples = 0;
  std::vector<ValuePieces> inputs;
  ValuePieces target;  // of the last layer
  // What is not as in the weights, where all of its elements are equal there.
  std::vector<std::pair<RoleIndex, UniformValues>> replaced;
  std::vector<ReferenceTensor> training;    // loss or outputs, observed, gradients of inputs and
                                            // of parameters, in this order
  std::vector<ReferenceTensor> evaluation;  // outputs; of the last layer score, loss and count
};

struct PackageReferences {
  std::string hash;  // of the file
  std::vector<LayerReference> layers;

  // That of the layers that compute as this one; nullptr where there is none.
  [[nodiscard]] const LayerReference* find(const Package& package, int layer) const;
};

inline constexpr const char* kReferenceFileName = "reference.jsonl";

// Those of a package in its folder; nothing where there is no such file. kCorrupt when it is
// damaged, or is of another package.json.
[[nodiscard]] Result<std::optional<PackageReferences>> read_references(const Package& package);

// The same of the file's text; `source` names it in errors.
[[nodiscard]] Result<PackageReferences> parse_references(std::string_view text,
                                                         const Package& package,
                                                         const std::string& source);

// A warning about layers without a reference, which cannot be compared; "" where all have one.
// Fails as read_references.
[[nodiscard]] Result<std::string> missing_references(const Package& package);

}  // namespace motley
