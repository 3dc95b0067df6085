// Parsing of the file of references, which is untrusted, and its location.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/system/files.h"
#include "models/package/graph_reader.h"
#include "models/package/package_limits.h"
#include "models/package/reference/reference.h"
#include "models/package/reference/reference_fields.h"
#include "models/package/sha256.h"

namespace motley {
namespace {

constexpr const char* kReferenceFormat = "motley-reference";
constexpr int kReferenceVersion = 1;
constexpr std::int64_t kSeedMax = std::int64_t{1} << 32;
constexpr std::int64_t kReferenceSamplesMax = 64;

Error damaged_reference(const std::string& source, std::string cause) {
  return {ErrorCode::kCorrupt, "damaged reference of a package, " + source, std::move(cause),
          "copy the package again, or export the model again"};
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

class LayerReferenceReader {
 public:
  explicit LayerReferenceReader(const Package& package) : package_(package) {}

  Result<LayerReference> read(const JsonFields& fields, int first_layer) {
    MOTLEY_TRY(check_keys(fields, {"layer", "seed", "samples", "inputs", "target", "replaced",
                                   "training", "evaluation"}));
    const auto layers = static_cast<std::int64_t>(package_.layers.size());
    MOTLEY_ASSIGN(const std::int64_t index, fields.integer("layer", first_layer, layers - 1));
    reference_.layer = static_cast<int>(index);
    MOTLEY_ASSIGN(const std::int64_t seed, fields.integer("seed", 0, kSeedMax));
    reference_.seed = static_cast<std::uint64_t>(seed);
    MOTLEY_ASSIGN(reference_.samples, fields.integer("samples", 1, kReferenceSamplesMax));
    MOTLEY_TRY(read_data(fields));
    MOTLEY_TRY(read_replaced(fields));
    MOTLEY_ASSIGN(reference_.training, read_compared(fields, "training", trained()));
    MOTLEY_ASSIGN(reference_.evaluation, read_compared(fields, "evaluation", evaluated()));
    return std::move(reference_);
  }

 private:
  [[nodiscard]] const PackageLayer& layer() const {
    return package_.layers[static_cast<std::size_t>(reference_.layer)];
  }

  [[nodiscard]] bool is_last() const { return layer().outputs.empty(); }

  Result<void> read_data(const JsonFields& fields) {
    const std::vector<BoundarySpec> specs = package_.inputs_of(reference_.layer);
    MOTLEY_ASSIGN(const auto inputs, fields.items("inputs", specs.size(), specs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      MOTLEY_ASSIGN(ValuePieces pieces, read_pieces(inputs[i], specs[i], bounds_of_input(i)));
      reference_.inputs.push_back(std::move(pieces));
    }
    MOTLEY_ASSIGN(const JsonFields target, fields.member("target"));
    if (target.value().is_null() == is_last()) {
      return target.bad("the last layer has a target, and no other");
    }
    if (!is_last()) return {};
    MOTLEY_ASSIGN(reference_.target,
                  read_pieces(target, package_.target, {0, package_.target_limit}));
    return {};
  }

  // The range of the data's integers is known if they have a limit; others have only the format's
  // limits.
  [[nodiscard]] IntegerBounds bounds_of_input(std::size_t index) const {
    if (reference_.layer == 0 && package_.inputs[index].limit) {
      return {0, *package_.inputs[index].limit};
    }
    return {-kPackageUnitsMax, kPackageUnitsMax};
  }

  Result<void> read_replaced(const JsonFields& fields) {
    MOTLEY_ASSIGN(const auto members, fields.members("replaced", 2 * kLayerTensorsMax));
    for (const auto& [name, kind] : members) {
      const auto role = parse_role(name);
      const bool is_parameter = role && role->role == Role::kParameter;
      const bool is_statistic = role && role->role == Role::kStatistic;
      const std::size_t there = is_parameter   ? layer().parameters.size()
                                : is_statistic ? layer().statistics.size()
                                               : 0;
      if (!role || static_cast<std::size_t>(role->index) >= there) {
        return kind.bad("the layer has no such parameter or statistic");
      }
      MOTLEY_TRY(check_keys(kind, {"low", "width"}));
      MOTLEY_ASSIGN(const UniformValues values, read_uniform(kind));
      reference_.replaced.emplace_back(*role, values);
    }
    return {};
  }

  void add_samples(std::vector<ExpectedTensor>& list, Role role, const TensorSpec& spec) const {
    int index = 0;
    for (const ExpectedTensor& other : list) index += other.role.role == role ? 1 : 0;
    list.push_back({{role, index}, reference_.samples * spec.count()});
  }

  [[nodiscard]] std::vector<ExpectedTensor> trained() const {
    std::vector<ExpectedTensor> list;
    if (is_last()) list.push_back({{Role::kLoss, 0}, 1});
    for (const TensorSpec& output : layer().outputs) add_samples(list, Role::kOutput, output);
    int index = 0;
    for (const auto& statistic : layer().statistics) {
      list.push_back({{Role::kObserved, index++}, count_of(statistic.shape)});
    }
    index = 0;
    for (const BoundarySpec& input : package_.inputs_of(reference_.layer)) {
      const RoleIndex gradient{Role::kInputGrad, index++};
      if (input.gradient) list.push_back({gradient, reference_.samples * input.count()});
    }
    index = 0;
    for (const auto& parameter : layer().parameters) {
      list.push_back({{Role::kParameterGrad, index++}, count_of(parameter.shape)});
    }
    return list;
  }

  [[nodiscard]] std::vector<ExpectedTensor> evaluated() const {
    if (is_last()) return {{{Role::kOutput, 0}, 0}, {{Role::kLoss, 0}, 1}, {{Role::kCount, 0}, 1}};
    std::vector<ExpectedTensor> list;
    for (const TensorSpec& output : layer().outputs) add_samples(list, Role::kOutput, output);
    return list;
  }

  const Package& package_;
  LayerReference reference_;
};

// Compares the body's hash and the package's with those in the first line.
Result<void> check_head(std::string_view head,
                        std::string_view body,
                        const Package& package,
                        const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(head, source));
  const JsonSource place(source, head);
  MOTLEY_TRY(
      JsonFields(json, place, ErrorCode::kConfig).header(kReferenceFormat, kReferenceVersion));
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(check_keys(fields, {"format", "version", "package", "sha256"}));
  MOTLEY_ASSIGN(const std::string of, fields.text("package"));
  if (of != package.sha256) {
    return damaged_reference(source, fmt::format("it is of another {}, whose SHA-256 is {}",
                                                 kPackageFileName, excerpt(of)));
  }
  MOTLEY_ASSIGN(const std::string right, fields.text("sha256"));
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  hash.add(std::as_bytes(std::span(body)));
  if (const std::string found = hash.hex(); found != right) {
    return damaged_reference(
        source, fmt::format("the SHA-256 of its second line is {}; the first declares {}", found,
                            excerpt(right)));
  }
  return {};
}

}  // namespace

const LayerReference* PackageReferences::find(const Package& package, int layer) const {
  const auto signature_of = [&](int index) -> const std::string& {
    return package.layers[static_cast<std::size_t>(index)].signature;
  };
  const auto found = std::ranges::find_if(layers, [&](const LayerReference& reference) {
    return signature_of(reference.layer) == signature_of(layer);
  });
  return found == layers.end() ? nullptr : &*found;
}

Result<PackageReferences> parse_references(std::string_view text,
                                           const Package& package,
                                           const std::string& source) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  MOTLEY_TRY(check_head(text.substr(0, end), body, package, source));
  MOTLEY_ASSIGN(const Json json, parse_json(body, source));
  const JsonSource place(source, body);
  const JsonFields list(json, place, ErrorCode::kCorrupt);
  MOTLEY_ASSIGN(const auto items, list.items(0, package.layers.size()));
  PackageReferences references;
  references.hash = hash128_hex(std::as_bytes(std::span(text)));
  int next = 0;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(LayerReference reference, LayerReferenceReader(package).read(item, next));
    next = reference.layer + 1;
    references.layers.push_back(std::move(reference));
  }
  return references;
}

Result<std::optional<PackageReferences>> read_references(const Package& package) {
  const std::filesystem::path path = package.folder / kReferenceFileName;
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (!exists) return std::optional<PackageReferences>();
  MOTLEY_ASSIGN(const std::string text, read_file(path, kPackageBytesMax));
  MOTLEY_ASSIGN(PackageReferences references, parse_references(text, package, path.string()));
  return std::optional(std::move(references));
}

Result<std::string> missing_references(const Package& package) {
  MOTLEY_ASSIGN(const auto references, read_references(package));
  constexpr const char* kRemedy =
      "their results on these machines are not compared with PyTorch; export the model again with "
      "this version's Python package";
  if (!references) {
    return fmt::format("the package {} has no {} of its layers, so {}", package.folder.string(),
                       kReferenceFileName, kRemedy);
  }
  std::vector<std::string> without;
  for (std::size_t l = 0; l < package.layers.size(); ++l) {
    if (references->find(package, static_cast<int>(l)) == nullptr) {
      without.push_back(package.layers[l].name);
    }
  }
  if (without.empty()) return std::string();
  return fmt::format("{} of the {} layers of the package {} have no reference ({}{}), so {}",
                     without.size(), package.layers.size(), package.folder.string(),
                     excerpt(without.front()), without.size() > 1 ? ", …" : "", kRemedy);
}

}  // namespace motley
