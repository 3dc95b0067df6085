#include "data/files/picture_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/files/odd_pictures.h"
#include "data/files/picture_list.h"
#include "data/pictures/decode_picture.h"
#include "data/pictures/fit_picture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPictureBytesMax = std::uint64_t{4} << 30;
constexpr std::size_t kLabelBytes = sizeof(std::int32_t);
constexpr std::int64_t kPictureSideMax = 1 << 16;

struct Picture {
  fs::path path;
  std::int32_t label = 0;
};

std::vector<std::string> names_of(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  names.reserve(folders.size());
  for (const fs::path& folder : folders) names.push_back(folder.filename().string());
  return names;
}

// The pictures of each class; `classes` are the labels in order.
Result<std::vector<Picture>> list_examples(const fs::path& folder,
                                           const std::vector<std::string>& classes,
                                           LeftOutFiles& left_out) {
  std::vector<Picture> examples;
  MOTLEY_ASSIGN(const auto folders, class_folders(folder, left_out));
  for (const fs::path& of_class : folders) {
    const auto label = std::ranges::find(classes, of_class.filename().string());
    if (label == classes.end()) {
      return Error{ErrorCode::kData,
                   fmt::format("no training pictures of the class {}", of_class.string()),
                   "the training part has no sub-folder of this name",
                   "move it, or add training pictures of the class"};
    }
    MOTLEY_ASSIGN(auto pictures, list_pictures(of_class, left_out));
    if (pictures.empty()) {
      return Error{ErrorCode::kData, fmt::format("no pictures in {}", of_class.string()),
                   "each sub-folder is a class", "remove it, or add its pictures"};
    }
    for (fs::path& path : pictures) {
      examples.push_back({std::move(path), static_cast<std::int32_t>(label - classes.begin())});
    }
  }
  return examples;
}

class PictureReader {
 public:
  PictureReader(const fs::path& root, std::span<const std::int64_t> shape, ProgressCounter* work)
      : root_(root),
        shape_(shape.begin(), shape.end()),
        bytes_each_(static_cast<std::size_t>(shape[0] * shape[1] * shape[2])),
        work_(work) {}

  [[nodiscard]] std::uint64_t bytes_of(const std::vector<Picture>& pictures) const {
    return pictures.size() * bytes_each_;
  }

  // Decodes the pictures of one part. The samples are those that can be decoded; the others are
  // added to `found`.
  [[nodiscard]] Result<Examples> read(const std::vector<Picture>& pictures,
                                      const fs::path& folder,
                                      ExampleStorage& storage,
                                      OddPictures& found) const {
    std::vector<std::byte> planes(bytes_of(pictures));
    std::vector<std::byte> labels(pictures.size() * kLabelBytes);
    std::size_t samples = 0;
    for (const Picture& picture : pictures) {
      MOTLEY_ASSIGN(const MappedFile file, MappedFile::open(picture.path));
      const auto decoded =
          decode_picture(file.bytes(), static_cast<int>(shape_[0]), picture.path.string());
      if (work_ != nullptr) work_->add_bytes(bytes_each_);
      if (!decoded.ok() && !has_picture_library(file.bytes())) return decoded.error();
      if (!decoded.ok()) {
        found.add_damaged(picture.path.lexically_relative(root_), decoded.error().cause);
        continue;
      }
      if (decoded->has_stray_bytes) {
        found.add_with_stray_bytes(picture.path.lexically_relative(root_));
      }
      fit_picture(decoded->raster, shape_[1], shape_[2],
                  std::span(planes).subspan(samples * bytes_each_, bytes_each_));
      std::memcpy(labels.data() + samples * kLabelBytes, &picture.label, kLabelBytes);
      ++samples;
    }
    planes.resize(samples * bytes_each_);
    labels.resize(samples * kLabelBytes);
    return Examples{
        {column(ElementType::kUint8, shape_, bytes_each_, std::move(planes), folder.string(),
                storage)},
        column(ElementType::kInt32, {}, kLabelBytes, std::move(labels),
               fmt::format("the sub-folders of {}, each a class", folder.string()), storage)};
  }

 private:
  static Column column(ElementType type,
                       std::vector<std::int64_t> shape,
                       std::size_t bytes_each,
                       std::vector<std::byte> bytes,
                       std::string name,
                       ExampleStorage& storage) {
    const auto kept = storage.keep(std::move(bytes));
    storage.add_content(kept);
    return Column(type, std::move(shape),
                  {{std::move(name), kept, kept.size() / bytes_each, bytes_each}});
  }

  fs::path root_;  // paths in messages are relative to it
  std::vector<std::int64_t> shape_;
  std::size_t bytes_each_;
  ProgressCounter* work_;
};

Result<void> check_wanted_shape(std::span<const std::int64_t> shape) {
  const auto is_side = [](std::int64_t side) { return side <= kPictureSideMax; };
  if (shape.size() == 3 && (shape[0] == 1 || shape[0] == 3) && is_side(shape[1]) &&
      is_side(shape[2])) {
    return {};
  }
  return Error{ErrorCode::kData, "pictures do not fit the model",
               fmt::format("it takes {}; a picture is [1, height, width] or [3, height, width]",
                           shape_text(shape)),
               "use a model of images, or data.kind = \"arrays\""};
}

bool has_sub_folders(const fs::path& folder) {
  LeftOutFiles ignored;
  const auto folders = class_folders(folder, ignored);
  return folders.ok() && !folders->empty();
}

// The folder of the held-out part, beside that of the training part.
std::optional<fs::path> held_out_folder(const fs::path& folder) {
  for (const char* name : {"val", "test"}) {
    if (has_sub_folders(folder / name)) return folder / name;
  }
  return std::nullopt;
}

// The pictures of both parts.
struct PictureParts {
  fs::path train_folder;
  std::optional<fs::path> eval_folder;
  std::vector<std::string> classes;
  std::vector<Picture> train;
  std::vector<Picture> eval;
  LeftOutFiles left_out;
};

Result<PictureParts> list_parts(const fs::path& folder) {
  PictureParts parts;
  parts.train_folder = train_part(folder);
  if (parts.train_folder != folder) {
    parts.eval_folder = held_out_folder(folder);
    MOTLEY_ASSIGN(const auto beside, class_folders(folder, parts.left_out));
  }
  LeftOutFiles counted_below;
  MOTLEY_ASSIGN(const auto folders, class_folders(parts.train_folder, counted_below));
  parts.classes = names_of(folders);
  MOTLEY_ASSIGN(parts.train, list_examples(parts.train_folder, parts.classes, parts.left_out));
  if (parts.eval_folder) {
    MOTLEY_ASSIGN(parts.eval, list_examples(*parts.eval_folder, parts.classes, parts.left_out));
  }
  return parts;
}

Error no_usable_pictures(const fs::path& folder) {
  return {ErrorCode::kData, fmt::format("no usable pictures in {}", folder.string()),
          "all of its pictures are damaged, and data.skip_damaged leaves them out",
          "add pictures, or remove it"};
}

// An error if a class has pictures, but none that can be used.
Result<void> check_each_class(const PictureParts& parts, const Column& labels) {
  std::vector<bool> has_any(parts.classes.size());
  for (std::uint64_t sample = 0; sample < labels.size(); ++sample) {
    has_any[static_cast<std::size_t>(integer_at(labels.type(), labels.at(sample), 0))] = true;
  }
  const auto without = std::find(has_any.begin(), has_any.end(), false);
  if (without == has_any.end()) return {};
  const auto number = static_cast<std::size_t>(without - has_any.begin());
  return no_usable_pictures(parts.train_folder / parts.classes[number]);
}

std::vector<std::string> notes_of(const PictureParts& parts,
                                  const OddPictures& found,
                                  const fs::path& folder) {
  std::vector<std::string> notes = found.notes(parts.train.size() + parts.eval.size(), folder);
  if (auto line = parts.left_out.line(folder)) notes.push_back(*std::move(line));
  return notes;
}

Result<void> check_bytes(std::uint64_t bytes, const fs::path& folder) {
  if (bytes <= kPictureBytesMax) return {};
  return Error{
      ErrorCode::kData, fmt::format("too many pictures below {}", folder.string()),
      fmt::format("{} bytes at the model's size; they are stored in memory, and the limit is {}",
                  bytes, kPictureBytesMax),
      "save them as uint8 arrays, which are mapped instead of loaded: data.kind = \"arrays\""};
}

Result<ExampleFiles> read_parts(const PictureParts& parts,
                                const fs::path& folder,
                                std::span<const std::int64_t> shape,
                                bool skips_damaged,
                                ProgressCounter* work) {
  const PictureReader reader(folder, shape, work);
  const std::uint64_t bytes = reader.bytes_of(parts.train) + reader.bytes_of(parts.eval);
  MOTLEY_TRY(check_bytes(bytes, folder));
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) reading.emplace(*work, "reading the data", bytes);
  ExampleStorage storage;
  OddPictures found;
  MOTLEY_ASSIGN(Examples train, reader.read(parts.train, parts.train_folder, storage, found));
  std::optional<Examples> held_out;
  if (!parts.eval.empty()) {
    MOTLEY_ASSIGN(held_out, reader.read(parts.eval, *parts.eval_folder, storage, found));
  }
  if (found.has_damaged() && !skips_damaged) {
    return found.refusal(parts.train.size() + parts.eval.size(), folder);
  }
  return ExampleFiles{std::move(storage), std::move(train), std::move(held_out), parts.classes,
                      notes_of(parts, found, folder)};
}

}  // namespace

// A class may be called "train"; its folder has no sub-folders.
fs::path train_part(const fs::path& folder) {
  return has_sub_folders(folder / "train") ? folder / "train" : folder;
}

bool holds_pictures(const fs::path& folder) {
  LeftOutFiles ignored;
  const auto folders = class_folders(folder, ignored);
  return folders.ok() && std::ranges::any_of(*folders, [&](const fs::path& sub) {
           const auto pictures = list_pictures(sub, ignored);
           return pictures.ok() && !pictures->empty();
         });
}

std::uint64_t picture_folder_bytes(const fs::path& folder, std::span<const std::int64_t> shape) {
  if (!check_wanted_shape(shape).ok()) return 0;
  const auto parts = list_parts(folder);
  if (!parts.ok()) return 0;
  const std::uint64_t count = parts->train.size() + parts->eval.size();
  return count * (static_cast<std::uint64_t>(shape[0] * shape[1] * shape[2]) + kLabelBytes);
}

Result<ExampleFiles> open_picture_folder(const fs::path& folder,
                                         std::span<const std::int64_t> shape,
                                         bool skips_damaged,
                                         ProgressCounter* work) {
  MOTLEY_TRY(check_wanted_shape(shape));
  MOTLEY_ASSIGN(const PictureParts parts, list_parts(folder));
  MOTLEY_ASSIGN(ExampleFiles files, read_parts(parts, folder, shape, skips_damaged, work));
  MOTLEY_TRY(check_each_class(parts, files.train.targets));
  if (files.held_out && files.held_out->size() == 0) return no_usable_pictures(*parts.eval_folder);
  return files;
}

Result<ExampleFiles> open_held_out_pictures(const fs::path& folder,
                                            const fs::path& train_folder,
                                            std::span<const std::int64_t> shape,
                                            bool skips_damaged,
                                            ProgressCounter* work) {
  MOTLEY_TRY(check_wanted_shape(shape));
  LeftOutFiles counted_in_training;
  MOTLEY_ASSIGN(const auto folders, class_folders(train_part(train_folder), counted_in_training));
  const auto own = train_part(folder) != folder ? held_out_folder(folder) : std::nullopt;
  PictureParts parts;
  parts.train_folder = own.value_or(folder);
  parts.classes = names_of(folders);
  MOTLEY_ASSIGN(parts.train, list_examples(parts.train_folder, parts.classes, parts.left_out));
  MOTLEY_ASSIGN(ExampleFiles files,
                read_parts(parts, parts.train_folder, shape, skips_damaged, work));
  if (files.train.size() == 0) return no_usable_pictures(parts.train_folder);
  return files;
}

}  // namespace motley
