#include "cluster/diagnose/precision_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace motley {
namespace {

const char* what_has(const std::string& compute_dtype) {
  return compute_dtype == "bf16" ? "bf16 needs a processor with AVX512-BF16 or AMX, or a GPU that "
                                   "supports it (NVIDIA: compute capability 8.0 or higher)"
                                 : "fp16 needs a GPU (NVIDIA: compute capability 7.0 or higher)";
}

std::string compute_dtypes_text(const DeviceDtype& device) {
  if (device.types.empty()) return device.name;
  return fmt::format("{}, which computes in {}", device.name, fmt::join(device.types, " and "));
}

// A hint naming the devices that support bf16 or fp16, but not the requested dtype.
std::string other_dtypes_text(const std::vector<DeviceDtype>& here) {
  for (const char* const other : {"bf16", "fp16"}) {
    std::vector<std::string> names;
    for (const DeviceDtype& device : here) {
      if (std::ranges::count(device.types, other) > 0) names.push_back(device.name);
    }
    if (names.empty()) continue;
    return fmt::format("set train.precision = \"{}\", which {} {}, or ", other,
                       fmt::join(names, ", "), names.size() == 1 ? "has" : "have");
  }
  return "";
}

}  // namespace

PrecisionCheck::PrecisionCheck(std::string wanted, std::vector<std::string> names, bool refuses)
    : wanted_(std::move(wanted)),
      names_(std::move(names)),
      refuses_(refuses),
      compute_dtypes_(names_.size()) {}

Result<std::optional<std::string>> PrecisionCheck::add(int worker, const Json& event) {
  const auto index = static_cast<std::size_t>(worker);
  MOTLEY_ASSIGN(compute_dtypes_[index], json_get<std::string>(event, "numbers", names_[index]));
  if (!std::ranges::all_of(compute_dtypes_, [](const auto& dtype) { return dtype.has_value(); })) {
    return std::optional<std::string>();
  }
  std::vector<std::string> without;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (*compute_dtypes_[i] != wanted_) without.push_back(names_[i]);
  }
  if (without.empty()) return std::optional<std::string>();
  if (without.size() < names_.size() || !refuses_) {
    return std::optional(fmt::format("{}: no {} there, so {} in fp32", fmt::join(without, ", "),
                                     wanted_,
                                     without.size() == 1 ? "it computes" : "they compute"));
  }
  has_refused_ = true;
  std::vector<DeviceDtype> here;
  for (const std::string& name : names_) here.push_back({name, {}});
  return unsupported_dtype(wanted_, here);
}

std::string PrecisionCheck::compute_dtype_of(std::size_t worker) const {
  return compute_dtypes_[worker].value_or(kFp32Dtype);
}

Error unsupported_dtype(const std::string& wanted, const std::vector<DeviceDtype>& here) {
  std::vector<std::string> texts;
  texts.reserve(here.size());
  for (const DeviceDtype& device : here) texts.push_back(compute_dtypes_text(device));
  return with_key(
      {ErrorCode::kConfig, fmt::format("train.precision = \"{}\": no device supports it", wanted),
       fmt::format("{}; here {} {}", what_has(wanted), here.size() == 1 ? "is" : "are",
                   fmt::join(texts, ", ")),
       other_dtypes_text(here) + "leave train.precision at \"fp32\""},
      "train.precision");
}

std::optional<std::string> plan_of_other_precision(const std::string& wanted, const Plan& plan) {
  const std::string made_for = precision_of(plan);
  if (made_for == wanted || plan.predicted_step_s == 0) return std::nullopt;
  return fmt::format(
      "the plan was made for train.precision = \"{}\", but the run trains in {}: predicted times "
      "and memory do not apply",
      made_for, wanted);
}

Result<void> check_plan_precision(const std::string& wanted,
                                  const Plan& plan,
                                  const Profile& profile) {
  if (wanted == kFp32Dtype || precision_of(plan) == wanted) return {};
  if (!capabilities_of(plan).computes) return {};
  std::vector<std::string> used;
  for (const RankPlan& rank : plan.ranks) {
    const std::string name = fmt::format("{} ({})", rank.machine, rank.device);
    if (std::ranges::find(used, name) == used.end()) used.push_back(name);
  }
  std::vector<std::string> having;
  for (const DeviceProfile& device : profile.devices) {
    if (device.compute_dtype != wanted) continue;
    having.push_back(fmt::format("{} ({})", device.machine, device.device));
  }
  const std::string without = fmt::format("{}", fmt::join(used, ", "));
  if (having.empty()) return unsupported_dtype(wanted, {{without, {}}});
  return with_key(
      {ErrorCode::kConfig,
       fmt::format("train.precision = \"{}\": no stage of the plan supports it", wanted),
       fmt::format("{} {} it, but the plan is faster on {} alone", fmt::join(having, ", "),
                   having.size() == 1 ? "has" : "have", without),
       fmt::format("leave {} out of the cluster file, or leave train.precision at \"fp32\"",
                   without)},
      "train.precision");
}

}  // namespace motley
