#include "models/package/quantised_weight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "models/package/argument_reader.h"
#include "models/package/graph_reader.h"
#include "models/package/package_fields.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

constexpr std::int64_t kByteValues = 256;
constexpr std::int64_t kCodesInByte = 2;

std::string text_of(const TensorSpec& tensor) {
  return fmt::format("{} [{}]", dtype_name(tensor.type), fmt::join(tensor.shape, ", "));
}

// Its scales go along one of the two dimensions.
std::vector<TensorSpec> possible_scales(const QuantisedWeight& weight) {
  const auto& shape = weight.tensor.shape;
  if (weight.has_four_bits()) {
    return {{Dtype::kFloat32, {quantised_blocks(weight.tensor.count()), 1}}};
  }
  return {{Dtype::kFloat32, {shape[0], 1}}, {Dtype::kFloat32, {1, shape[1]}}};
}

TensorSpec codes_of(const QuantisedWeight& weight) {
  if (!weight.has_four_bits()) return {Dtype::kInt8, weight.tensor.shape};
  return {Dtype::kUInt8, {quantised_blocks(weight.tensor.count()), kQuantisedBlock / kCodesInByte}};
}

Result<void> check_part(const JsonFields& fields,
                        const char* key,
                        const std::string& name,
                        const std::vector<TensorSpec>& possible,
                        const std::map<std::string, TensorSpec>& tensors) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return fields.bad(key, fmt::format("no layer has the constant '{}'", excerpt(name)));
  }
  if (std::ranges::find(possible, found->second) != possible.end()) return {};
  return fields.bad(key, fmt::format("'{}' is {}; {} was expected", excerpt(name),
                                     text_of(found->second), text_of(possible.front())));
}

Result<QuantisedWeight> read_weight(const JsonFields& fields,
                                    const std::map<std::string, TensorSpec>& tensors) {
  MOTLEY_TRY(check_keys(fields, {"type", "shape", "codes", "scales", "table"}));
  QuantisedWeight weight;
  MOTLEY_ASSIGN(const std::string type, fields.text("type"));
  const auto known = constant_type_of(type);
  using enum Dtype;
  if (!known || (*known != kFloat32 && *known != kBFloat16 && *known != kFloat16)) {
    return fields.bad("type", fmt::format("it is '{}'; float32, bfloat16 or float16 was expected",
                                          excerpt(type)));
  }
  weight.tensor.type = *known;
  MOTLEY_ASSIGN(weight.tensor.shape, read_shape(fields));
  if (weight.tensor.shape.size() != 2) return fields.bad("shape", "two sizes were expected");
  MOTLEY_ASSIGN(weight.codes, read_name(fields, "codes"));
  MOTLEY_ASSIGN(weight.scales, read_name(fields, "scales"));
  MOTLEY_ASSIGN(const JsonFields table, fields.member("table"));
  if (!table.value().is_null()) {
    MOTLEY_ASSIGN(weight.table, read_name(fields, "table"));
    const TensorSpec numbers{kFloat32, {kByteValues, kCodesInByte}};
    MOTLEY_TRY(check_part(fields, "table", weight.table, {numbers}, tensors));
  }
  MOTLEY_TRY(check_part(fields, "codes", weight.codes, {codes_of(weight)}, tensors));
  MOTLEY_TRY(check_part(fields, "scales", weight.scales, possible_scales(weight), tensors));
  return weight;
}

}  // namespace

Result<std::map<std::string, QuantisedWeight>> read_quantised(
    const JsonFields& fields, const std::map<std::string, TensorSpec>& tensors) {
  std::map<std::string, QuantisedWeight> weights;
  if (!fields.has("quantised")) return weights;
  MOTLEY_ASSIGN(const auto members, fields.members("quantised", kPackageQuantisedMax));
  for (const auto& [name, member] : members) {
    if (name.empty() || name.size() > kPackageNameMax || tensors.contains(name)) {
      return member.bad("another tensor has this name");
    }
    MOTLEY_ASSIGN(QuantisedWeight weight, read_weight(member, tensors));
    weights.emplace(name, std::move(weight));
  }
  return weights;
}

}  // namespace motley
