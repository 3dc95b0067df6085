#include "training/optimizer/parameter_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/toml.h"
#include "models/spec/hidden_matrices.h"
#include "run_config/optimizers.h"
#include "run_config/parameter_groups.h"
#include "training/optimizer/muon.h"

namespace motley {
namespace {

constexpr std::size_t kNamesShown = 3;

// The parameters that a step updates and the number of their values.
std::map<std::string, std::int64_t> trained_parameters(const ModelSpec& model) {
  std::map<std::string, std::int64_t> trained;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.statistic_momentum) trained[parameter.name] = parameter.count();
    }
  }
  return trained;
}

// The number of differing characters at best, a pattern's * counting as none.
std::size_t edit_distance(const std::string& pattern, const std::string& name) {
  std::vector<std::size_t> row(name.size() + 1);
  for (std::size_t j = 0; j <= name.size(); ++j) row[j] = j;
  for (const char letter : pattern) {
    std::size_t diagonal = row[0];
    row[0] += letter == '*' ? 0 : 1;
    for (std::size_t j = 1; j <= name.size(); ++j) {
      const std::size_t above = row[j];
      if (letter == '*') {
        row[j] = std::min(above, row[j - 1]);
      } else {
        const bool is_equal = letter == '?' || letter == name[j - 1];
        row[j] = std::min({diagonal + (is_equal ? 0 : 1), above + 1, row[j - 1] + 1});
      }
      diagonal = above;
    }
  }
  return row[name.size()];
}

Error unmatched(const std::string& pattern, const std::map<std::string, std::int64_t>& trained) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& [name, count] : trained) ranked.emplace_back(edit_distance(pattern, name), name);
  const std::size_t shown = std::min(kNamesShown, ranked.size());
  std::ranges::partial_sort(ranked, ranked.begin() + static_cast<std::ptrdiff_t>(shown));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shown; ++i) names.push_back(ranked[i].second);
  return with_key(
      {ErrorCode::kConfig,
       fmt::format("the pattern '{}' of train.groups matches no trained parameter", pattern),
       fmt::format("the model has {} of them; the closest are {}", trained.size(),
                   fmt::join(names, ", ")),
       "correct the pattern, or remove the entry; * stands for any characters"},
      "train.groups");
}

std::string summary_of(const std::map<std::string, ParameterRule>& rules,
                       const std::map<std::string, std::int64_t>& trained,
                       const OptimizerFacts& facts) {
  if (facts.matrix_moments.empty()) return "";
  std::int64_t matrices = 0;
  std::int64_t in_matrices = 0;
  std::int64_t all = 0;
  for (const auto& [name, rule] : rules) {
    all += trained.at(name);
    if (!rule.matrix) continue;
    ++matrices;
    in_matrices += trained.at(name);
  }
  return fmt::format("muon trains {} {} with {} parameters, adamw the other {}", matrices,
                     matrices == 1 ? "matrix" : "matrices", in_matrices, all - in_matrices);
}

}  // namespace

Result<ParameterRules> ParameterRules::make(const TrainConfig& train, const ModelSpec& model) {
  MOTLEY_ASSIGN(const std::vector<ParameterGroup> groups, parse_parameter_groups(train.groups));
  const std::map<std::string, std::int64_t> trained = trained_parameters(model);
  const OptimizerFacts& facts = optimizer_of(train);
  std::map<std::string, MatrixShape> matrices;
  if (!facts.matrix_moments.empty()) matrices = hidden_matrices(model);
  ParameterRules made;
  std::vector<bool> matches(groups.size());
  for (const auto& [name, count] : trained) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      matches[g] = matches[g] || matches_pattern(groups[g].pattern, name);
    }
    ParameterRule& rule = made.rules_[name];
    if (const auto matrix = matrices.find(name); matrix != matrices.end()) {
      rule.matrix = matrix->second;
    }
    if (const auto group = group_of(groups, name)) {
      rule.lr_factor = groups[*group].lr;
      rule.decay_factor = groups[*group].weight_decay;
      if (groups[*group].by_adamw) rule.matrix.reset();
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!matches[g]) return unmatched(groups[g].pattern, trained);
  }
  std::int64_t all = 0;
  for (const auto& [name, rule] : made.rules_) {
    all += trained.at(name);
    if (rule.matrix) made.matrix_flops_per_parameter_ += orthogonal_flops(*rule.matrix);
  }
  if (all > 0) made.matrix_flops_per_parameter_ /= static_cast<double>(all);
  made.summary_ = summary_of(made.rules_, trained, facts);
  return made;
}

double matrix_flops_per_parameter(const TrainConfig& train, const ModelSpec& model) {
  const auto rules = ParameterRules::make(train, model);
  return rules.ok() ? rules->matrix_flops_per_parameter() : 0;
}

}  // namespace motley
