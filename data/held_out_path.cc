#include "data/held_out_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/files/array_folder.h"
#include "data/files/image_data.h"
#include "data/files/picture_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeldOutKey = "data.holdout_path";

// Whether `path` is `folder` or within it; links are followed.
bool is_within(const fs::path& path, const fs::path& folder) {
  std::error_code code;
  const fs::path inner = fs::weakly_canonical(path, code);
  if (code) return false;
  const fs::path outer = fs::weakly_canonical(folder, code);
  if (code) return false;
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

std::string kind_text(const Column& column) {
  return fmt::format("{} of {}", shape_text(column.shape()), element_name(column.type()));
}

Result<void> check_alike(const char* what, const Column& train, const Column& held_out) {
  if (train.type() == held_out.type() && std::ranges::equal(train.shape(), held_out.shape())) {
    return {};
  }
  return Error{ErrorCode::kData,
               fmt::format("the {} of training and held-out samples do not match, {} and {}", what,
                           train.runs().front().file, held_out.runs().front().file),
               fmt::format("the training samples are {}, the held-out ones {}", kind_text(train),
                           kind_text(held_out)),
               "save the held-out samples in the dtype and shape of the training samples"};
}

Result<void> check_alike(const Examples& train, const Examples& held_out) {
  for (std::size_t k = 0; k < train.inputs.size(); ++k) {
    MOTLEY_TRY(check_alike("inputs", train.inputs[k], held_out.inputs[k]));
  }
  return check_alike("targets", train.targets, held_out.targets);
}

std::vector<std::string> names_of(const std::vector<SampleInput>& inputs) {
  std::vector<std::string> names;
  for (const SampleInput& input : inputs) names.push_back(input.name);
  return names;
}

Result<ExampleFiles> open_train(const DataConfig& data,
                                const SampleFormat& sample,
                                ProgressCounter* work) {
  if (data.kind == "arrays") return open_array_folder(data.path, names_of(sample.inputs));
  return open_image_data(data.path, sample.inputs.front().tensor.shape, data.skip_damaged, work);
}

Result<ExampleFiles> open_held_out(const DataConfig& data,
                                   const SampleFormat& sample,
                                   ProgressCounter* work) {
  if (data.kind == "images") {
    return open_held_out_images(data.holdout_path, data.path, sample.inputs.front().tensor.shape,
                                data.skip_damaged, work);
  }
  MOTLEY_ASSIGN(ExampleFiles files, open_array_folder(data.holdout_path, names_of(sample.inputs)));
  if (files.held_out) files.train = *std::exchange(files.held_out, std::nullopt);
  return files;
}

}  // namespace

DataConfig held_out_data(const DataConfig& data) {
  DataConfig held_out = data;
  held_out.path = data.holdout_path;
  held_out.holdout_path.clear();
  held_out.holdout = 0;
  return held_out;
}

Error of_held_out_path(Error error) {
  constexpr std::string_view kPathKey = "data.path";
  for (std::size_t at = error.remedy.find(kPathKey); at != std::string::npos;
       at = error.remedy.find(kPathKey, at + 1)) {
    error.remedy.replace(at, kPathKey.size(), kHeldOutKey);
  }
  return error.key.empty() ? with_key(with_context(std::move(error), kHeldOutKey), kHeldOutKey)
                           : error;
}

Result<void> check_paths_apart(const DataConfig& data) {
  const auto apart = [&](const std::string& cause) {
    return with_key({ErrorCode::kConfig, "data.holdout_path and data.path share samples", cause,
                     "move the held-out samples out of the training data, or leave out "
                     "data.holdout_path: a share of the data (data.holdout) is held out by itself"},
                    kHeldOutKey);
  };
  if (is_within(data.path, data.holdout_path) && is_within(data.holdout_path, data.path)) {
    return apart(fmt::format("both are {}", data.path));
  }
  if (data.kind != "text" && data.kind != "images") return {};
  const bool has_class_folders = data.kind == "images" && holds_pictures(data.path);
  if (data.kind == "images" && !has_class_folders) return {};
  const fs::path trained = has_class_folders ? train_part(data.path) : fs::path(data.path);
  if (is_within(data.holdout_path, trained)) {
    return apart(fmt::format("{} is within {}", data.holdout_path, trained.string()));
  }
  if (data.kind == "text" && is_within(data.path, data.holdout_path)) {
    return apart(fmt::format("{} is within {}", data.path, data.holdout_path));
  }
  return {};
}

Result<ExampleFiles> open_examples(const DataConfig& data,
                                   const SampleFormat& sample,
                                   ProgressCounter* work) {
  MOTLEY_ASSIGN(ExampleFiles files, open_train(data, sample, work));
  if (!has_held_out_path(data)) return files;
  auto held_out = open_held_out(data, sample, work);
  if (!held_out.ok()) return of_held_out_path(held_out.error());
  const Result<void> alike = check_alike(files.train, held_out->train);
  if (!alike.ok()) return of_held_out_path(alike.error());
  files.storage.append(std::move(held_out->storage));
  files.held_out = std::move(held_out->train);
  std::ranges::move(held_out->notes, std::back_inserter(files.notes));
  return files;
}

}  // namespace motley
