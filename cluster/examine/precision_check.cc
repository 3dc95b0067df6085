#include "cluster/examine/precision_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace motley {

PrecisionCheck::PrecisionCheck(std::string wanted, std::vector<std::string> names, bool refuses)
    : wanted_(std::move(wanted)),
      names_(std::move(names)),
      refuses_(refuses),
      has_(names_.size()) {}

Result<std::optional<std::string>> PrecisionCheck::add(int worker, const Json& event) {
  const auto index = static_cast<std::size_t>(worker);
  MOTLEY_ASSIGN(const std::string numbers, json_get<std::string>(event, "numbers", names_[index]));
  has_[index] = numbers == wanted_;
  if (!std::ranges::all_of(has_, [](const auto& has) { return has.has_value(); })) {
    return std::optional<std::string>();
  }
  std::vector<std::string> without;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!*has_[i]) without.push_back(names_[i]);
  }
  if (without.empty()) return std::optional<std::string>();
  if (without.size() < names_.size() || !refuses_) {
    return std::optional(fmt::format("{}: no {} there, so {} in fp32", fmt::join(without, ", "),
                                     wanted_,
                                     without.size() == 1 ? "it computes" : "they compute"));
  }
  const char* const needs =
      wanted_ == "bf16" ? "bf16 takes a processor with AVX512-BF16 or AMX, or a GPU that has it "
                          "(NVIDIA: from compute capability 8.0 on)"
                        : "fp16 takes a GPU (NVIDIA: from compute capability 7.0 on)";
  return Error{ErrorCode::kConfig,
               fmt::format("train.precision = \"{}\", and no device here computes in it", wanted_),
               fmt::format("{}; here are {}", needs, fmt::join(names_, ", ")),
               "leave train.precision at \"fp32\""};
}

}  // namespace motley
