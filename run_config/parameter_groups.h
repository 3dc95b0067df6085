// train.groups: factors of learning rate and weight decay for parameters by name.
//
// Each entry is "PATTERN: SETTING=VALUE, …". The pattern is compared with whole parameter names, as
// `motley ckpt show --tensors` and safetensors files have them; *, ? and [abc] stand for any
// characters, dots included. The first entry that matches a parameter counts, others are not
// combined with it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley {

struct ParameterGroup {
  std::string pattern;
  double lr = 1;  // factor of the learning rate of each step
  // Factor of train.weight_decay; nullopt = as without a group, 1 for matrices and token embeddings
  // and otherwise 0.
  std::optional<double> weight_decay;
  // Whether muon leaves its hidden matrices to AdamW: "optimizer=adamw".
  bool by_adamw = false;
};

// The entries in their order. kConfig, with the key train.groups, for one that has another form or
// an invalid factor.
[[nodiscard]] Result<std::vector<ParameterGroup>> parse_parameter_groups(
    const std::vector<std::string>& entries);

[[nodiscard]] bool matches_pattern(const std::string& pattern, const std::string& name);

// Index of the first group whose pattern matches the name, if any.
[[nodiscard]] std::optional<std::size_t> group_of(const std::vector<ParameterGroup>& groups,
                                                  const std::string& name);

}  // namespace motley
