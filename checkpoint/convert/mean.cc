#include "checkpoint/convert/mean.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

constexpr std::size_t kBlockValues = std::size_t{1} << 16;
constexpr std::size_t kNamedMax = 8;  // differences that an error names

using Parameters = std::map<std::string, StoredTensor>;

Parameters parameters_of(const CheckpointReader& reader) {
  Parameters parameters;
  for (StoredTensor& tensor : reader.tensors()) {
    std::string name = tensor.outline.name;
    if (!tensor.of_optimizer) parameters.emplace(std::move(name), std::move(tensor));
  }
  return parameters;
}

std::string shape_text(const TensorOutline& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

// Each of the first one's tensors as the other has it; what does not fit is added to `differences`.
std::map<std::string, StoredTensor> partners_of(const Parameters& first,
                                                const CheckpointReader& reader,
                                                const std::string& name,
                                                std::vector<std::string>& differences) {
  const Parameters own = parameters_of(reader);
  std::map<std::string, StoredTensor> partners;
  std::set<std::string> met;
  for (const auto& [parameter, tensor] : first) {
    const auto stored = reader.stored_name(parameter);
    const auto found = stored ? own.find(*stored) : own.end();
    if (found == own.end()) {
      differences.push_back(fmt::format("'{}' is not in {}", parameter, name));
      continue;
    }
    met.insert(found->first);
    if (found->second.outline.shape != tensor.outline.shape) {
      differences.push_back(fmt::format("'{}' is {} and in {} {}", parameter,
                                        shape_text(tensor.outline), name,
                                        shape_text(found->second.outline)));
    }
    partners.emplace(parameter, found->second);
  }
  for (const auto& [parameter, tensor] : own) {
    if (!met.contains(parameter)) {
      differences.push_back(fmt::format("'{}' is in {} alone", parameter, name));
    }
  }
  return partners;
}

}  // namespace

MeanValues::MeanValues(std::vector<WeightedValues> parts) : parts_(std::move(parts)) {
  for (const WeightedValues& part : parts_) weights_ += part.weight;
}

Result<void> MeanValues::next(std::span<float> values) {
  while (!values.empty()) {
    const auto block = values.first(std::min(values.size(), kBlockValues));
    piece_.resize(block.size());
    sums_.assign(block.size(), 0);
    for (WeightedValues& part : parts_) {
      MOTLEY_TRY(part.values->next(piece_));
      for (std::size_t i = 0; i < block.size(); ++i) sums_[i] += part.weight * piece_[i];
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<float>(sums_[i] / weights_);
    }
    values = values.subspan(block.size());
  }
  return {};
}

Result<std::vector<NewTensor>> mean_of(const std::vector<CheckpointReader>& readers,
                                       const std::vector<std::string>& names,
                                       const std::vector<double>& weights) {
  MOTLEY_CHECK(
      !readers.empty() && readers.size() == weights.size() && readers.size() == names.size(),
      "{} readers, {} weights", readers.size(), weights.size());
  const Parameters first = parameters_of(readers.front());
  std::vector<std::string> differences;
  std::vector<std::map<std::string, StoredTensor>> partners;  // [reader]
  for (std::size_t i = 0; i < readers.size(); ++i) {
    partners.push_back(partners_of(first, readers[i], names[i], differences));
  }
  if (!differences.empty()) {
    if (const std::size_t all = differences.size(); all > kNamedMax) {
      differences.resize(kNamedMax);
      differences.push_back(fmt::format("and {} more", all - kNamedMax));
    }
    return Error{ErrorCode::kConfig, "these are not weights of one model",
                 fmt::format("beside {}: {}", names.front(), fmt::join(differences, "; ")),
                 "a mean is taken of runs of one model"};
  }
  std::vector<NewTensor> tensors;
  for (const StoredTensor& stored : readers.front().tensors()) {
    const std::string& name = stored.outline.name;
    if (!first.contains(name)) continue;
    std::vector<StoredTensor> parts;
    parts.reserve(partners.size());
    for (const auto& each : partners) parts.push_back(each.at(name));
    tensors.push_back(
        {name, stored.outline.shape, [&readers, weights, parts = std::move(parts)] {
           std::vector<WeightedValues> streams;
           for (std::size_t i = 0; i < parts.size(); ++i) {
             streams.push_back({std::make_unique<StoredValues>(readers[i], parts[i]), weights[i]});
           }
           return std::make_unique<MeanValues>(std::move(streams));
         }});
  }
  return tensors;
}

}  // namespace motley
