#include "checkpoint/convert/reshard.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/json.h"
#include "checkpoint/convert/checkpoint_writer.h"
#include "checkpoint/folders.h"
#include "checkpoint/residual_name.h"
#include "checkpoint/safetensors_header.h"

namespace motley {
namespace {

std::string parameter_of(const std::string& moment) {
  return moment.substr(moment.find('/') + 1);
}

struct Contents {
  std::vector<StoredTensor> parameters;  // in the model's order
  std::vector<StoredTensor> moments;     // in the order of their parameters
};

Contents contents_of(const CheckpointReader& reader, const std::vector<std::string>& order) {
  Contents contents;
  for (StoredTensor& tensor : reader.tensors()) {
    (tensor.of_optimizer ? contents.moments : contents.parameters).push_back(std::move(tensor));
  }
  std::map<std::string, std::size_t> places;
  for (const std::string& name : order) places.emplace(name, places.size());
  const auto place_of = [&](const std::string& name) {
    const auto found = places.find(name);
    return found == places.end() ? places.size() : found->second;
  };
  std::ranges::stable_sort(contents.parameters, {}, [&](const StoredTensor& tensor) {
    return place_of(tensor.outline.name);
  });
  places.clear();
  for (const StoredTensor& tensor : contents.parameters) {
    places.emplace(tensor.outline.name, places.size());
  }
  std::ranges::stable_sort(contents.moments, {}, [&](const StoredTensor& tensor) {
    return place_of(parameter_of(tensor.outline.name));
  });
  return contents;
}

// Maps the checkpoint's residual names to those of the present version: version 1 has rank numbers
// in place of member numbers, in the same order.
std::map<std::string, std::string> new_names(const Manifest& manifest) {
  std::map<std::string, std::string> names;
  for (const auto& [parameter, residuals] : residual_names(manifest)) {
    int member = 0;
    for (const std::string& name : residuals) names[name] = residual_name(member++, parameter);
  }
  return names;
}

std::vector<NewTensor> copies_of(const CheckpointReader& reader,
                                 const std::vector<StoredTensor>& tensors) {
  const auto renamed = new_names(*reader.manifest());
  std::vector<NewTensor> copies;
  copies.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const auto found = renamed.find(tensor.outline.name);
    const std::string& name = found == renamed.end() ? tensor.outline.name : found->second;
    copies.push_back({name, tensor.outline.shape, [&reader, &tensor] {
                        return std::make_unique<StoredValues>(reader, tensor);
                      }});
  }
  return copies;
}

// Chooses the ends of the files; a parameter's weight includes its moments.
void cut(NewCheckpoint& checkpoint, const Contents& contents, int files) {
  std::map<std::string, std::size_t> places;
  std::vector<std::uint64_t> weights;
  for (const StoredTensor& tensor : contents.parameters) {
    places.emplace(tensor.outline.name, places.size());
    weights.push_back(tensor_bytes(tensor.outline));
  }
  std::vector<std::size_t> moments(weights.size() + 1, 0);  // moments of the preceding parameters
  for (const StoredTensor& tensor : contents.moments) {
    const std::size_t place = places.at(parameter_of(tensor.outline.name));
    weights[place] += tensor_bytes(tensor.outline);
    ++moments[place + 1];
  }
  for (std::size_t i = 1; i < moments.size(); ++i) moments[i] += moments[i - 1];
  checkpoint.parameter_ends = even_cuts(weights, files);
  for (const std::size_t end : checkpoint.parameter_ends) {
    checkpoint.moment_ends.push_back(moments[end]);
  }
}

Result<void> check_moments(const Contents& contents, const std::filesystem::path& folder) {
  std::map<std::string, int> names;
  for (const StoredTensor& tensor : contents.parameters) names.emplace(tensor.outline.name, 0);
  for (const StoredTensor& tensor : contents.moments) {
    if (names.contains(parameter_of(tensor.outline.name))) continue;
    return Error{ErrorCode::kCorrupt, fmt::format("damaged checkpoint, {}", folder.string()),
                 fmt::format("moment '{}' belongs to no parameter", tensor.outline.name),
                 "use an earlier checkpoint, or copy this one again"};
  }
  return {};
}

}  // namespace

Result<Manifest> reshard(const Resharding& request, WorkObserver& watch) {
  MOTLEY_TRY(verify_checkpoint(request.checkpoint, &watch));
  MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(request.checkpoint));
  MOTLEY_ASSIGN(const WeightsOutline outline, reader.outline());
  const Contents contents = contents_of(reader, request.order);
  MOTLEY_TRY(check_moments(contents, request.checkpoint));
  const Manifest& manifest = *reader.manifest();
  NewCheckpoint checkpoint{.state = manifest.state,
                           .config = manifest.config,
                           .model_config = outline.config,
                           .parameters = copies_of(reader, contents.parameters),
                           .moments = copies_of(reader, contents.moments),
                           .parameter_ends = {},
                           .moment_ends = {}};
  cut(checkpoint, contents, request.files);
  // A mean of checkpoints has no optimizer files.
  const bool has_moments = std::ranges::any_of(
      manifest.files, [](const WrittenFile& file) { return is_optimizer_file(file.name); });
  if (!has_moments) checkpoint.moment_ends.clear();
  return write_checkpoint(request.destination, checkpoint, watch);
}

}  // namespace motley
