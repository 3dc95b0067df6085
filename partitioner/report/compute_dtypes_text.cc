#include "partitioner/report/compute_dtypes_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace motley {

std::string compute_dtypes_text(const Plan& plan, const std::vector<std::string>& compute_dtypes) {
  std::map<std::string, std::vector<std::string>> places;
  for (std::size_t r = 0; r < compute_dtypes.size(); ++r) {
    std::vector<std::string>& of_these = places[compute_dtypes[r]];
    std::string place = fmt::format("{}/{}", plan.ranks[r].machine, plan.ranks[r].device);
    if (std::ranges::find(of_these, place) == of_these.end()) of_these.push_back(std::move(place));
  }
  if (places.size() == 1) {
    const std::string& all = places.begin()->first;
    return all == kFp32Dtype ? "" : all;
  }
  std::vector<std::string> texts;
  texts.reserve(places.size());
  for (const auto& [each, devices] : places) {
    texts.push_back(fmt::format("{} on {}", each, fmt::join(devices, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace motley
