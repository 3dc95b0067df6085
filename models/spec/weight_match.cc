#include "models/spec/weight_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "checkpoint/weight_names.h"
#include "models/package/package.h"

namespace motley {
namespace {

constexpr std::string_view kHead = "lm_head.weight";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Buffers that programs save with the parameters: masks of GPT-2, the frequencies of Llama.
bool is_buffer(const std::string& stored) {
  const std::string name = bare_weight_name(stored);
  return (block_of(name) &&
          (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"))) ||
         name.ends_with("rotary_emb.inv_freq");
}

// Published GPT-2s store these as [in, out]; equivalent models with PyTorch's Linear store them as
// [out, in].
bool is_linear_of_gpt2(const std::string& parameter) {
  constexpr std::array<std::string_view, 4> kLinear = {".attn.c_attn.weight", ".attn.c_proj.weight",
                                                       ".mlp.c_fc.weight", ".mlp.c_proj.weight"};
  const std::string name = bare_weight_name(parameter);
  return block_of(name) && std::ranges::any_of(kLinear, [&](std::string_view linear) {
           return name.ends_with(linear);
         });
}

bool is_transpose(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
}

class Matcher {
 public:
  Matcher(const ModelSpec& model, const TensorShapes& tensors, Layouts layouts)
      : tensors_(tensors), is_transposed_(layouts == Layouts::kMayBeTransposed) {
    const auto tied = model.tied_pair();
    if (model.package) {
      for (const std::string& name : model.package->untrained) {
        untrained_.insert(bare_weight_name(name));
      }
    }
    for (const LayerSpec& layer : model.layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        if (parameter.tied_use) continue;
        look_for(parameter);
        if (tied && parameter.name == tied->parameter) tied_shape_ = parameter.shape;
      }
    }
  }

  WeightMatch match() {
    is_transposed_ = is_transposed_ && linear_weights_are_transposed();
    for (WeightLocation& place : match_.places) {
      place.transposed = is_transposed_ && is_linear_of_gpt2(place.name);
      const std::vector<std::int64_t>& found = tensors_.at(place.stored);
      if (place.transposed ? is_transpose(place.shape, found) : place.shape == found) continue;
      match_.reshaped.push_back(fmt::format("'{}' is {} for this configuration, and there {}",
                                            place.name, shape_text(place.shape),
                                            shape_text(found)));
    }
    for (const auto& [name, shape] : tensors_) look_at_rest(name, shape);
    return std::move(match_);
  }

 private:
  void look_for(const ParameterSpec& parameter) {
    for (const std::string& form : weight_name_forms(parameter.name)) {
      if (!tensors_.contains(form) || !taken_.insert(form).second) continue;
      match_.places.push_back({parameter.name, parameter.shape, form});
      return;
    }
    match_.missing.push_back(
        fmt::format("'{}' {} is missing", parameter.name, shape_text(parameter.shape)));
  }

  // All weights whose shape decides it must be transposed.
  [[nodiscard]] bool linear_weights_are_transposed() const {
    bool is_certain = false;
    for (const WeightLocation& place : match_.places) {
      const std::vector<std::int64_t>& found = tensors_.at(place.stored);
      if (!is_linear_of_gpt2(place.name) || place.shape.size() != 2) continue;
      if (place.shape[0] == place.shape[1]) continue;
      if (!is_transpose(place.shape, found)) return false;
      is_certain = true;
    }
    return is_certain;
  }

  void look_at_rest(const std::string& name, const std::vector<std::int64_t>& shape) {
    if (taken_.contains(name) || is_buffer(name)) return;
    if (untrained_.contains(bare_weight_name(name))) return;
    if (bare_weight_name(name) == kHead && tied_shape_ == shape) {
      match_.tied_copy = WeightLocation{std::string(kHead), shape, name};
      return;
    }
    match_.unexpected.push_back(
        fmt::format("'{}' {} is not in this model", excerpt(name), shape_text(shape)));
  }

  const TensorShapes& tensors_;
  bool is_transposed_;
  WeightMatch match_;
  std::set<std::string> taken_;
  std::set<std::string> untrained_;  // tensors of the package that external weights do not replace
  std::optional<std::vector<std::int64_t>> tied_shape_;
};

}  // namespace

std::optional<int> block_of(std::string_view name) {
  if (!name.starts_with("h.")) return std::nullopt;
  int block = 0;
  const auto [end, code] = std::from_chars(name.data() + 2, name.data() + name.size(), block);
  const bool is_number = code == std::errc{} && end != name.data() + name.size() && *end == '.';
  return is_number && block >= 0 ? std::optional(block) : std::nullopt;
}

WeightMatch match_weights(const ModelSpec& model, const TensorShapes& tensors, Layouts layouts) {
  return Matcher(model, tensors, layouts).match();
}

}  // namespace motley
