#include "checkpoint/weight_names.h"

#include <array>
#include <string_view>

namespace motley {
namespace {

// The prefixes in transformers for the body of GPT-2 and of Llama models.
constexpr std::array<std::string_view, 2> kBodies = {"transformer.", "model."};

}  // namespace

std::string bare_weight_name(const std::string& name) {
  for (const std::string_view body : kBodies) {
    if (name.starts_with(body)) return name.substr(body.size());
  }
  return name;
}

std::vector<std::string> weight_name_forms(const std::string& name) {
  std::vector<std::string> forms = {name};
  const std::string bare = bare_weight_name(name);
  if (bare != name) forms.push_back(bare);
  for (const std::string_view body : kBodies) {
    if (!name.starts_with(body)) forms.push_back(std::string(body) + bare);
  }
  return forms;
}

}  // namespace motley
