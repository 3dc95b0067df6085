#include "models/graph/reference_run.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>

#include <ATen/ATen.h>

#include "base/check.h"
#include "checkpoint/safetensors.h"

namespace motley {
namespace {

template <class T>
std::span<T> values_of(at::Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

// Generates the masks and numbers of the Python exporter from the reference's seed.
class ReferenceDraws final : public GraphDraws {
 public:
  explicit ReferenceDraws(std::uint64_t seed) : seed_(seed) {}

  void mask(at::Tensor& ones, double p, int index) const override {
    at::Tensor made = at::empty(ones.sizes(), at::kFloat);
    fill_mask(values_of<float>(made), p, stream(StreamPurpose::kDropout, index));
    ones.copy_(made);
  }

  [[nodiscard]] at::Tensor numbers(const DrawnNumbers& drawn,
                                   const std::vector<std::int64_t>& sizes,
                                   c10::Device device) const override {
    const bool is_whole = drawn.kind == DrawKind::kIntegers;
    at::Tensor made = at::empty(sizes, is_whole ? at::kLong : at::kFloat);
    const HashedStream from = stream(StreamPurpose::kDrawn, drawn.index);
    if (is_whole) {
      fill_drawn(values_of<std::int64_t>(made), drawn, from);
    } else {
      fill_drawn(values_of<float>(made), drawn, from);
    }
    return made.to(device);
  }

 private:
  [[nodiscard]] HashedStream stream(StreamPurpose purpose, int index) const {
    return {seed_, purpose, static_cast<std::uint64_t>(index)};
  }

  std::uint64_t seed_;
};

const UniformValues* replacement_of(const LayerReference& reference, RoleIndex role) {
  for (const auto& [replaced, values] : reference.replaced) {
    if (replaced == role) return &values;
  }
  return nullptr;
}

at::Tensor made_sample(const TensorSpec& spec,
                       const ValuePieces& pieces,
                       const LayerReference& reference,
                       const HashedStream& stream,
                       std::optional<std::int64_t> ignored) {
  const bool is_float = spec.type == Dtype::kFloat32;
  at::Tensor made = at::empty(spec.sizes(reference.samples), is_float ? at::kFloat : at::kLong);
  if (is_float) {
    fill_samples(values_of<float>(made), pieces, stream);
  } else {
    fill_samples(values_of<std::int64_t>(made), pieces, stream, ignored);
  }
  return spec.type == Dtype::kBool ? made.ne(0) : made;
}

}  // namespace

const char* part_words(PartName part) {
  switch (part) {
    case PartName::kForward:
      return "forward";
    case PartName::kInputPart:
      return "input part of backward";
    case PartName::kWeightPart:
      return "weight part of backward";
    case PartName::kEvaluate:
      return "evaluation";
    case PartName::kScore:
      return "scores";
  }
  return "";
}

ReferenceRun::ReferenceRun(std::shared_ptr<PreparedPackage> prepared,
                           const LayerReference& reference,
                           c10::Device device)
    : prepared_(std::move(prepared)),
      reference_(reference),
      layer_(prepared_->package().layers[static_cast<std::size_t>(reference.layer)]),
      device_(device) {}

Result<ReferenceRun> ReferenceRun::make(std::shared_ptr<const Package> package,
                                        const LayerReference& reference,
                                        c10::Device device,
                                        at::ScalarType products) {
  MOTLEY_ASSIGN(auto prepared, PreparedPackage::prepare(std::move(package), reference.layer,
                                                        reference.layer + 1, device, products));
  ReferenceRun run(std::move(prepared), reference, device);
  MOTLEY_TRY(run.read_weights());
  return run;
}

Result<void> ReferenceRun::read_weights() {
  MOTLEY_ASSIGN(const SafetensorsFile file,
                SafetensorsFile::open(prepared_->package().weights_path()));
  const auto read = [&](RoleIndex role, StreamPurpose purpose, const auto& entry) -> Result<void> {
    at::Tensor tensor = at::empty(entry.shape, at::kFloat);
    if (const UniformValues* const replaced = replacement_of(reference_, role)) {
      fill_uniform(values_of<float>(tensor), *replaced,
                   HashedStream(reference_.seed, purpose, static_cast<std::uint64_t>(role.index)));
    } else {
      MOTLEY_TRY(file.read(entry.name, entry.shape, values_of<float>(tensor)));
    }
    persistent_[{role.role, role.index}] = tensor.to(device_);
    return {};
  };
  for (std::size_t k = 0; k < layer_.parameters.size(); ++k) {
    MOTLEY_TRY(read({Role::kParameter, static_cast<int>(k)}, StreamPurpose::kParameter,
                    layer_.parameters[k]));
  }
  for (std::size_t k = 0; k < layer_.statistics.size(); ++k) {
    MOTLEY_TRY(read({Role::kStatistic, static_cast<int>(k)}, StreamPurpose::kStatistic,
                    layer_.statistics[k]));
  }
  int index = 0;
  for (at::Tensor& constant : prepared_->constants(reference_.layer)) {
    persistent_[{Role::kConstant, index++}] = std::move(constant);
  }
  return {};
}

const Graph& ReferenceRun::graph(PartName part) {
  return runner(part).graph();
}

GraphRunner& ReferenceRun::runner(PartName part) {
  PreparedPackage::LayerRunners& runners = prepared_->runners(reference_.layer);
  switch (part) {
    case PartName::kForward:
      return runners.forward;
    case PartName::kInputPart:
      return runners.input_part;
    case PartName::kWeightPart:
      return runners.weight_part;
    case PartName::kEvaluate:
      return runners.evaluate;
    case PartName::kScore:
      break;
  }
  MOTLEY_CHECK(runners.score, "layer {} has no score", reference_.layer);
  return *runners.score;
}

Result<RoleTensors> ReferenceRun::run(PartName part,
                                      const RoleTensors& roles,
                                      const Observer& observer) {
  GraphRunner& runs = runner(part);
  std::vector<at::Tensor> takes;
  for (const RoleIndex& role : runs.graph().takes) {
    const auto found = roles.find({role.role, role.index});
    takes.push_back(found != roles.end() ? found->second : persistent_.at({role.role, role.index}));
  }
  const ReferenceDraws draws(reference_.seed);
  if (observer) {
    runs.observe([&](std::size_t node, const std::vector<at::Tensor>& values) {
      observer(part, node, values);
    });
  }
  Result<std::vector<at::Tensor>> ran = runs.run(std::move(takes), reference_.samples, &draws);
  runs.observe({});
  MOTLEY_ASSIGN(std::vector<at::Tensor> given, std::move(ran));
  RoleTensors by_role;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const RoleIndex& role = runs.graph().gives[k].first;
    by_role[{role.role, role.index}] = std::move(given[k]);
  }
  return by_role;
}

RoleTensors ReferenceRun::inputs() const {
  RoleTensors roles;
  const Package& package = prepared_->package();
  const std::vector<BoundarySpec> specs = package.inputs_of(reference_.layer);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    roles[{Role::kInput, static_cast<int>(k)}] =
        made_sample(specs[k], reference_.inputs[k], reference_,
                    HashedStream(reference_.seed, StreamPurpose::kInput, k), std::nullopt)
            .to(device_);
  }
  if (!reference_.target.empty()) {
    roles[{Role::kTarget, 0}] =
        made_sample(package.target, reference_.target, reference_,
                    HashedStream(reference_.seed, StreamPurpose::kTarget), package.ignored)
            .to(device_);
  }
  return roles;
}

Result<RoleTensors> ReferenceRun::training(const Observer& observer) {
  MOTLEY_ASSIGN(RoleTensors given, run(PartName::kForward, inputs(), observer));
  RoleTensors roles;
  for (auto& [role, tensor] : given) {
    if (role.first == Role::kSaved) roles[role] = std::move(tensor);
  }
  for (std::size_t k = 0; k < layer_.outputs.size(); ++k) {
    if (!layer_.outputs[k].gradient) continue;
    at::Tensor grad = at::empty(layer_.outputs[k].sizes(reference_.samples), at::kFloat);
    fill_uniform(values_of<float>(grad), {-1, 2},
                 HashedStream(reference_.seed, StreamPurpose::kGradient, k));
    roles[{Role::kGrad, static_cast<int>(k)}] = grad.to(device_);
  }
  MOTLEY_ASSIGN(RoleTensors back, run(PartName::kInputPart, roles, observer));
  for (auto& [role, tensor] : back) {
    (role.first == Role::kQueued ? roles : given)[role] = std::move(tensor);
  }
  MOTLEY_ASSIGN(RoleTensors late, run(PartName::kWeightPart, roles, observer));
  given.merge(late);
  return given;
}

Result<RoleTensors> ReferenceRun::evaluation(const Observer& observer) {
  const RoleTensors roles = inputs();
  MOTLEY_ASSIGN(RoleTensors given, run(PartName::kEvaluate, roles, observer));
  if (!layer_.outputs.empty()) return given;
  MOTLEY_ASSIGN(RoleTensors scores, run(PartName::kScore, roles, observer));
  given.merge(scores);
  return given;
}

}  // namespace motley
