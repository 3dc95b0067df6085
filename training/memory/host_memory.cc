#include "training/memory/host_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "compression/kernels/squared_norm.h"
#include "training/optimizer/muon.h"

namespace motley {
namespace {

// Enough work to repay starting a thread.
constexpr std::int64_t kPartFloats = 1 << 16;

template <class T>
std::span<T> part_of(std::span<T> values, std::int64_t first, std::int64_t last) {
  return values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
}

}  // namespace

HostMemory::HostMemory(std::vector<Parameter> parameters,
                       std::map<ChunkId, std::span<float>> summed,
                       std::unique_ptr<const Optimizer> optimizer,
                       InParts in_parts)
    : parameters_(std::move(parameters)),
      summed_(std::move(summed)),
      optimizer_(std::move(optimizer)),
      in_parts_(std::move(in_parts)),
      moments_(parameters_.size()),
      averages_(parameters_.size()) {}

std::vector<std::string> HostMemory::moment_names(std::size_t parameter) const {
  return parameters_[parameter].matrix ? optimizer_->matrices()->moment_names()
                                       : optimizer_->moment_names();
}

void HostMemory::make_moments(std::size_t parameter) {
  // Allocates each in place: copying one would leave a hole of its size in the heap.
  moments_[parameter].resize(moment_names(parameter).size());
  for (std::vector<float>& moment : moments_[parameter]) {
    moment.resize(parameters_[parameter].values.size(), 0.0F);
  }
}

void HostMemory::make_average(std::size_t parameter) {
  averages_[parameter].resize(parameters_[parameter].values.size(), 0.0F);
}

std::span<float> HostMemory::array(const StateArray& array) {
  switch (array.kind) {
    case StateArray::Kind::kValues:
      return parameters_[array.parameter].values;
    case StateArray::Kind::kGradients:
      return parameters_[array.parameter].gradients;
    case StateArray::Kind::kMoment:
      return moments_[array.parameter].at(array.moment);
    case StateArray::Kind::kAverage:
      return averages_[array.parameter];
  }
  return {};
}

Result<void> HostMemory::fill(const StateArray& to, const Write& write) {
  return write(array(to));
}

void HostMemory::add_to_gradient(std::size_t parameter, std::span<const float> terms) {
  const std::span<float> gradients = parameters_[parameter].gradients;
  std::ranges::transform(gradients, terms, gradients.begin(), std::plus<>{});
}

std::span<const float> HostMemory::view(const StateArray& of) {
  return array(of);
}

std::uint64_t HostMemory::hash_values(std::size_t parameter) {
  return hash64(std::as_bytes(parameters_[parameter].values));
}

std::span<float> HostMemory::reduced_gradients(ChunkId chunk) {
  const auto summed = summed_.find(chunk);
  MOTLEY_CHECK(summed != summed_.end(), "chunk {} is on another rank", chunk.value);
  return summed->second;
}

std::span<float> HostMemory::reduced_gradient(std::size_t parameter) {
  return parameters_[parameter].gradients;
}

std::span<float> HostMemory::staged_gradient(std::size_t parameter) {
  return parameters_[parameter].gradients;
}

// It is already in host memory.
void HostMemory::stage_gradient(std::size_t /*parameter*/) {}

std::vector<double> HostMemory::squared_norms(const std::vector<std::size_t>& parameters) {
  // The norm of a parameter is one sum with a fixed order.
  std::vector<double> norms(parameters.size());
  in_parts_(std::ssize(parameters), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      norms[i] = squared_norm(parameters_[parameters[i]].gradients);
    }
  });
  return norms;
}

void HostMemory::add_gradient(std::size_t from, std::size_t to) {
  add_to_gradient(to, parameters_[from].gradients);
}

void HostMemory::copy_values(std::size_t from, std::size_t to) {
  std::ranges::copy(parameters_[from].values, parameters_[to].values.begin());
}

void HostMemory::update(const std::vector<std::size_t>& parameters,
                        const UpdateArguments& arguments) {
  for (const std::size_t index : parameters) {
    const Parameter& parameter = parameters_[index];
    if (parameter.matrix) {
      optimizer_->matrices()->update(parameter.values, parameter.gradients, moments_[index].front(),
                                     *parameter.matrix, arguments, in_parts_);
      continue;
    }
    in_parts_(std::ssize(parameter.values), kPartFloats,
              [&](std::int64_t first, std::int64_t last) {
                std::vector<std::span<float>> moments;
                for (std::vector<float>& moment : moments_[index]) {
                  moments.push_back(part_of(std::span(moment), first, last));
                }
                optimizer_->update(part_of(parameter.values, first, last),
                                   part_of(parameter.gradients, first, last), moments, arguments);
              });
  }
}

void HostMemory::average(const std::vector<std::size_t>& parameters, double decay) {
  const auto keep = static_cast<float>(decay);
  const auto share = static_cast<float>(1 - decay);
  for (const std::size_t parameter : parameters) {
    const std::span<const float> values = parameters_[parameter].values;
    const std::span<float> average = averages_[parameter];
    in_parts_(std::ssize(average), kPartFloats, [&](std::int64_t first, std::int64_t last) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
        average[i] = average[i] * keep + share * values[i];
      }
    });
  }
}

void HostMemory::move_statistic(std::size_t parameter, float share, float count) {
  const auto& [values, gradients, matrix] = parameters_[parameter];
  std::ranges::transform(values, gradients, values.begin(), [&](float value, float sum) {
    return (1 - share) * value + share * (sum / count);
  });
}

void HostMemory::clear_gradients() {
  for (const Parameter& parameter : parameters_) {
    in_parts_(std::ssize(parameter.gradients), kPartFloats,
              [&](std::int64_t first, std::int64_t last) {
                std::ranges::fill(part_of(parameter.gradients, first, last), 0.0F);
              });
  }
}

}  // namespace motley
