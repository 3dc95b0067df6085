#include "data/files/picture_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/files/fit_picture.h"
#include "data/files/raster.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPictureBytesMax = std::uint64_t{4} << 30;
constexpr std::uint64_t kLabelBytes = sizeof(std::int32_t);
constexpr std::int64_t kPictureSideMax = 1 << 16;

struct Picture {
  fs::path path;
  std::int32_t label = 0;
};

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  std::error_code code;
  return (ending == ".png" || ending == ".jpg" || ending == ".jpeg") &&
         fs::is_regular_file(path, code);
}

Error unreadable_folder(const fs::path& folder, const std::error_code& code) {
  return {ErrorCode::kData, fmt::format("cannot read {}", folder.string()), code.message(),
          "set data.path to a readable folder"};
}

// In the byte order of their paths.
std::vector<fs::path> sorted(std::vector<fs::path> paths) {
  std::ranges::sort(paths, {}, &fs::path::native);
  return paths;
}

Result<std::vector<fs::path>> list_sub_folders(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    const bool hidden = it->path().filename().native().starts_with('.');
    if (!hidden && it->is_directory(ignored)) folders.push_back(it->path());
  }
  if (code) return unreadable_folder(folder, code);
  return sorted(std::move(folders));
}

Result<std::vector<fs::path>> list_pictures(const fs::path& folder) {
  std::vector<fs::path> pictures;
  std::error_code code;
  for (auto it = fs::recursive_directory_iterator(folder, code);
       !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    if (is_picture(it->path())) pictures.push_back(it->path());
  }
  if (code) return unreadable_folder(folder, code);
  return sorted(std::move(pictures));
}

std::vector<std::string> names_of(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  names.reserve(folders.size());
  for (const fs::path& folder : folders) names.push_back(folder.filename().string());
  return names;
}

// The pictures of each class; `classes` are the labels in order.
Result<std::vector<Picture>> list_examples(const fs::path& folder,
                                           const std::vector<std::string>& classes) {
  std::vector<Picture> examples;
  MOTLEY_ASSIGN(const auto folders, list_sub_folders(folder));
  for (const fs::path& of_class : folders) {
    const auto label = std::ranges::find(classes, of_class.filename().string());
    if (label == classes.end()) {
      return Error{ErrorCode::kData,
                   fmt::format("no training pictures of the class {}", of_class.string()),
                   "the training part has no sub-folder of this name",
                   "move it, or add training pictures of the class"};
    }
    MOTLEY_ASSIGN(auto pictures, list_pictures(of_class));
    if (pictures.empty()) {
      return Error{ErrorCode::kData, fmt::format("no PNG or JPEG file in {}", of_class.string()),
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
  PictureReader(std::span<const std::int64_t> shape, ProgressCounter* work)
      : shape_(shape.begin(), shape.end()),
        bytes_each_(static_cast<std::size_t>(shape[0] * shape[1] * shape[2])),
        work_(work) {}

  [[nodiscard]] std::uint64_t bytes_of(const std::vector<Picture>& pictures) const {
    return pictures.size() * bytes_each_;
  }

  [[nodiscard]] Result<Examples> read(const std::vector<Picture>& pictures,
                                      const fs::path& folder,
                                      ExampleStorage& storage) const {
    std::vector<std::byte> planes(bytes_of(pictures));
    std::vector<std::byte> labels(pictures.size() * sizeof(std::int32_t));
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      MOTLEY_ASSIGN(const MappedFile file, MappedFile::open(pictures[i].path));
      MOTLEY_ASSIGN(const Raster raster, decode_picture(file.bytes(), static_cast<int>(shape_[0]),
                                                        pictures[i].path.string()));
      fit_picture(raster, shape_[1], shape_[2],
                  std::span(planes).subspan(i * bytes_each_, bytes_each_));
      std::memcpy(labels.data() + i * sizeof(std::int32_t), &pictures[i].label,
                  sizeof(std::int32_t));
      if (work_ != nullptr) work_->add_bytes(bytes_each_);
    }
    return Examples{
        {column(ElementType::kUint8, shape_, bytes_each_, std::move(planes), folder.string(),
                storage)},
        column(ElementType::kInt32, {}, sizeof(std::int32_t), std::move(labels),
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
  const auto folders = list_sub_folders(folder);
  return folders.ok() && !folders->empty();
}

// The folder of the held-out part, beside that of the training part.
std::optional<fs::path> held_out_folder(const fs::path& folder) {
  for (const char* name : {"val", "test"}) {
    if (has_sub_folders(folder / name)) return folder / name;
  }
  return std::nullopt;
}

}  // namespace

bool holds_pictures(const fs::path& folder) {
  const auto folders = list_sub_folders(folder);
  return folders.ok() && std::ranges::any_of(*folders, [](const fs::path& sub) {
           const auto pictures = list_pictures(sub);
           return pictures.ok() && !pictures->empty();
         });
}

std::uint64_t picture_folder_bytes(const fs::path& folder, std::span<const std::int64_t> shape) {
  if (!check_wanted_shape(shape).ok()) return 0;
  std::vector<fs::path> parts = {folder};
  if (has_sub_folders(folder / "train")) {
    parts = {folder / "train"};
    if (const auto held_out = held_out_folder(folder)) parts.push_back(*held_out);
  }
  std::uint64_t count = 0;
  for (const fs::path& part : parts) {
    const auto classes = list_sub_folders(part);
    if (!classes.ok()) return 0;
    for (const fs::path& of_class : *classes) {
      const auto pictures = list_pictures(of_class);
      count += pictures.ok() ? pictures->size() : 0;
    }
  }
  return count * (static_cast<std::uint64_t>(shape[0] * shape[1] * shape[2]) + kLabelBytes);
}

Result<ExampleFiles> open_picture_folder(const fs::path& folder,
                                         std::span<const std::int64_t> shape,
                                         ProgressCounter* work) {
  MOTLEY_TRY(check_wanted_shape(shape));
  // A class may be called "train"; its folder has no sub-folders.
  const bool has_parts = has_sub_folders(folder / "train");
  const fs::path train_folder = has_parts ? folder / "train" : folder;
  const auto eval_folder = has_parts ? held_out_folder(folder) : std::nullopt;
  MOTLEY_ASSIGN(const auto folders, list_sub_folders(train_folder));
  const auto classes = names_of(folders);
  MOTLEY_ASSIGN(const auto train, list_examples(train_folder, classes));
  std::vector<Picture> eval;
  if (eval_folder) {
    MOTLEY_ASSIGN(eval, list_examples(*eval_folder, classes));
  }
  const PictureReader reader(shape, work);
  const std::uint64_t bytes = reader.bytes_of(train) + reader.bytes_of(eval);
  if (bytes > kPictureBytesMax) {
    return Error{
        ErrorCode::kData, fmt::format("too many pictures below {}", folder.string()),
        fmt::format("{} bytes at the model's size; they are stored in memory, and the limit is {}",
                    bytes, kPictureBytesMax),
        "save them as uint8 arrays, which are mapped instead of loaded: data.kind = \"arrays\""};
  }
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) reading.emplace(*work, "reading the data", bytes);
  ExampleStorage storage;
  MOTLEY_ASSIGN(Examples trained, reader.read(train, train_folder, storage));
  std::optional<Examples> held_out;
  if (!eval.empty()) {
    MOTLEY_ASSIGN(held_out, reader.read(eval, *eval_folder, storage));
  }
  return ExampleFiles{std::move(storage), std::move(trained), std::move(held_out)};
}

}  // namespace motley
