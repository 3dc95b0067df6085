#include "models/package/reference/reference_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "models/package/graph_reader.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

constexpr std::size_t kPiecesMax = 8;
constexpr std::size_t kListedMax = 64;
constexpr std::size_t kSamplesMax = 64;
constexpr double kMovedMax = 1e9;

bool is_finite_float(const Json& json) {
  return json.is_number() && std::isfinite(json.get<float>());
}

Result<std::vector<double>> read_numbers(const JsonFields& fields,
                                         const char* key,
                                         std::size_t size_min,
                                         std::size_t size_max) {
  MOTLEY_ASSIGN(const JsonFields list, fields.member(key));
  const Json& json = list.value();
  if (!json.is_array() || json.size() < size_min || json.size() > size_max) {
    return list.bad(fmt::format("a list of {} to {} numbers was expected", size_min, size_max));
  }
  std::vector<double> numbers;
  for (const Json& item : json) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) {
      return list.bad("finite numbers were expected");
    }
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

Result<ListedValues> read_listed(const JsonFields& fields, Dtype type, IntegerBounds integers) {
  MOTLEY_ASSIGN(std::vector<double> values, read_numbers(fields, "values", 1, kListedMax));
  for (const double value : values) {
    const bool fits = type == Dtype::kFloat32 ? std::isfinite(static_cast<float>(value))
                                              : std::trunc(value) == value &&
                                                    value >= static_cast<double>(integers.low) &&
                                                    value < static_cast<double>(integers.limit);
    if (!fits) return fields.bad("values", fmt::format("{} is not allowed there", value));
  }
  return ListedValues{std::move(values)};
}

Result<ValuePiece> read_piece(const JsonFields& fields, Dtype type, IntegerBounds integers) {
  ValuePiece piece;
  MOTLEY_ASSIGN(piece.count, fields.integer("count", 0, kTensorCountMax));
  if (fields.has("values")) {
    MOTLEY_TRY(check_keys(fields, {"count", "values"}));
    MOTLEY_ASSIGN(piece.kind, read_listed(fields, type, integers));
  } else if (type != Dtype::kFloat32) {
    MOTLEY_TRY(check_keys(fields, {"count", "below"}));
    MOTLEY_ASSIGN(const std::int64_t below, fields.integer("below", 1, integers.limit));
    piece.kind = IntegersBelow{below};
  } else {
    MOTLEY_TRY(check_keys(fields, {"count", "low", "width"}));
    MOTLEY_ASSIGN(piece.kind, read_uniform(fields));
  }
  return piece;
}

Result<ReferenceTensor> read_tensor_of_reference(const JsonFields& fields,
                                                 const ExpectedTensor& expected) {
  MOTLEY_TRY(check_keys(fields, {"tensor", "count", "nonfinite", "norm", "largest", "projections",
                                 "samples", "rounding"}));
  ReferenceTensor tensor;
  tensor.role = expected.role;
  MOTLEY_ASSIGN(const std::string name, fields.text("tensor"));
  const std::string wanted =
      fmt::format("{}:{}", role_name(expected.role.role), expected.role.index);
  if (name != wanted) {
    return fields.bad("tensor", fmt::format("it is '{}', not {}", excerpt(name), wanted));
  }
  const std::int64_t most = expected.count > 0 ? expected.count : kTensorCountMax;
  MOTLEY_ASSIGN(const std::int64_t count,
                fields.integer("count", expected.count > 0 ? expected.count : 1, most));
  MOTLEY_ASSIGN(const std::int64_t nonfinite, fields.integer("nonfinite", 0, count));
  TensorDigest& digest = tensor.digest;
  digest.count = static_cast<std::size_t>(count);
  digest.nonfinite = static_cast<std::size_t>(nonfinite);
  MOTLEY_ASSIGN(digest.norm, fields.quantity("norm"));
  MOTLEY_ASSIGN(digest.largest, fields.quantity("largest"));
  constexpr std::size_t kProjections = TensorDigest::kProjections;
  MOTLEY_ASSIGN(const auto projections,
                read_numbers(fields, "projections", kProjections, kProjections));
  std::copy(projections.begin(), projections.end(), digest.projections.begin());
  MOTLEY_ASSIGN(digest.samples,
                read_numbers(fields, "samples", 0, std::min(kSamplesMax, digest.count)));
  MOTLEY_ASSIGN(const auto moved, read_numbers(fields, "rounding", 2, 2));
  for (const double share : moved) {
    if (share < 0 || share > kMovedMax) return fields.bad("rounding", "it is not from 0 to 1");
  }
  tensor.moved_fp32 = moved[0];
  tensor.moved_bf16 = moved[1];
  return tensor;
}

}  // namespace

Result<UniformValues> read_uniform(const JsonFields& fields) {
  MOTLEY_ASSIGN(const JsonFields low, fields.member("low"));
  MOTLEY_ASSIGN(const JsonFields width, fields.member("width"));
  if (!is_finite_float(low.value()) || !is_finite_float(width.value())) {
    return fields.bad("finite float32 numbers were expected");
  }
  return UniformValues{low.value().get<float>(), width.value().get<float>()};
}

Result<ValuePieces> read_pieces(const JsonFields& list,
                                const TensorSpec& tensor,
                                IntegerBounds integers) {
  if (tensor.type == Dtype::kBool) integers = kTruthValues;
  MOTLEY_ASSIGN(const auto items, list.items(1, kPiecesMax + 1));
  ValuePieces pieces;
  std::int64_t count = 0;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(ValuePiece piece, read_piece(item, tensor.type, integers));
    count += piece.count;
    pieces.push_back(std::move(piece));
  }
  if (count != tensor.count()) {
    return list.bad(
        fmt::format("the pieces have {} elements; a sample has {}", count, tensor.count()));
  }
  return pieces;
}

Result<std::vector<ReferenceTensor>> read_compared(const JsonFields& fields,
                                                   const char* key,
                                                   const std::vector<ExpectedTensor>& expected) {
  MOTLEY_ASSIGN(const auto items, fields.items(key, expected.size(), expected.size()));
  std::vector<ReferenceTensor> tensors;
  for (std::size_t i = 0; i < items.size(); ++i) {
    MOTLEY_ASSIGN(ReferenceTensor tensor, read_tensor_of_reference(items[i], expected[i]));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace motley
