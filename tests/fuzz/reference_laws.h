// The properties of the references of a package, and valid ones for right_package().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/package/reference/reference.h"
#include "models/package/sha256.h"
#include "tests/fuzz/laws.h"
#include "tests/fuzz/package_laws.h"

namespace motley {

// A list of tensors {name, elements}, each with a sample.
inline std::string right_tensors(const std::vector<std::pair<std::string, int>>& tensors) {
  std::string text;
  for (const auto& [name, count] : tensors) {
    text +=
        (text.empty() ? "" : ",\n    ") + std::string(R"({"tensor": ")") + name +
        R"(", "count": )" + std::to_string(count) +
        R"(, "nonfinite": 0, "norm": 1.5, "largest": 1.0, "projections": [0.5, -1.5, 1e-3, 0], )"
        R"("samples": [0.25], "rounding": [1e-6, 0.004]})";
  }
  return "[" + text + "]";
}

// The second line of the file.
inline std::string right_reference_body() {
  return R"([{"layer": 0, "seed": 1, "samples": 2, "target": null,
  "inputs": [[{"count": 3, "low": -1.5, "width": 3.0}, {"count": 1, "values": [0, 1]}]],
  "replaced": {"parameter:1": {"low": -0.05, "width": 0.1}, "statistic:0": {"low": 0.9, "width": 0.2}},
  "training": )" +
         right_tensors({{"output:0", 6},
                        {"output:1", 8},
                        {"observed:0", 3},
                        {"parameter_grad:0", 12},
                        {"parameter_grad:1", 3}}) +
         R"(, "evaluation": )" + right_tensors({{"output:0", 6}, {"output:1", 8}}) + R"(},
 {"layer": 1, "seed": 2, "samples": 2, "target": [{"count": 1, "below": 2}],
  "inputs": [[{"count": 3, "low": 0, "width": 1}], [{"count": 4, "values": [0.5]}]], "replaced": {},
  "training": )" +
         right_tensors(
             {{"loss:0", 1}, {"input_grad:0", 6}, {"input_grad:1", 8}, {"parameter_grad:0", 14}}) +
         R"(, "evaluation": )" + right_tensors({{"output:0", 4}, {"loss:0", 1}, {"count:0", 1}}) +
         "}]\n";
}

// The file with any text as its second line.
inline std::string reference_file(std::string_view body, std::string_view package_sha256) {
  auto hash = Sha256::make();
  hash->add(std::as_bytes(std::span(body)));
  return R"({"format": "motley-reference", "version": 1, "package": ")" +
         std::string(package_sha256) + R"(", "sha256": ")" + hash->hex() + "\"}\n" +
         std::string(body);
}

// All pieces that were read can be generated: integers are below their limit, and none is missing.
inline std::string wrong_with_pieces(const ValuePieces& pieces,
                                     const TensorSpec& tensor,
                                     std::int64_t limit) {
  const HashedStream stream(1, StreamPurpose::kInput);
  if (tensor.type == Dtype::kFloat32) {
    std::vector<float> made(static_cast<std::size_t>(2 * tensor.count()));
    fill_samples(made, pieces, stream);
    return "";
  }
  std::vector<std::int64_t> made(static_cast<std::size_t>(2 * tensor.count()), -1);
  fill_samples(made, pieces, stream, std::nullopt);
  for (const std::int64_t value : made) {
    if (value < 0 || value >= limit) return "an integer that the data cannot have";
  }
  return "";
}

inline std::string wrong_with_references(std::string_view body) {
  static const std::string kSource = "reference.jsonl";
  static const Package kPackage = *parse_package(right_package(), "p.json");
  const auto references =
      parse_references(reference_file(body, kPackage.sha256), kPackage, kSource);
  if (!references.ok()) {
    return wrong_error(references.error(), {ErrorCode::kConfig, ErrorCode::kCorrupt}, kSource);
  }
  for (const LayerReference& reference : references->layers) {
    const std::vector<BoundarySpec> inputs = kPackage.inputs_of(reference.layer);
    if (reference.inputs.size() != inputs.size()) return "inputs that the layer does not have";
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      std::string wrong = wrong_with_pieces(reference.inputs[k], inputs[k], 0);
      if (!wrong.empty()) return wrong;
    }
    if (!reference.target.empty()) {
      std::string wrong =
          wrong_with_pieces(reference.target, kPackage.target, kPackage.target_limit);
      if (!wrong.empty()) return wrong;
    }
    for (const auto* const tensors : {&reference.training, &reference.evaluation}) {
      for (const ReferenceTensor& tensor : *tensors) {
        if (tensor.digest.samples.size() > tensor.digest.count) return "more samples than elements";
        if (!(deviation(tensor.digest, tensor.digest, 0) == 0)) return "it differs from itself";
      }
    }
  }
  return "";
}

}  // namespace motley
