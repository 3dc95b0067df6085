#include "data/inspect/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "data/corpus.h"
#include "data/files/cifar_files.h"
#include "data/files/idx_files.h"
#include "data/files/npy_header.h"
#include "data/files/packed_file.h"
#include "data/files/picture_folder.h"
#include "data/files/text_encoding.h"
#include "data/tokens/token_files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Error unrecognised(const fs::path& path, const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kData, fmt::format("unrecognised data, {}", path.string()), cause, remedy};
}

bool holds_arrays(const fs::path& folder) {
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".npy") && (name.starts_with("inputs.") || name == "targets.npy")) {
      return true;
    }
  }
  return false;
}

// CIFAR-100 and token files share the name train.bin.
bool holds_cifar_images(const fs::path& folder) {
  constexpr std::uintmax_t kRecordBytes = 2 + 3 * 32 * 32;
  std::error_code code;
  if (!holds_cifar(folder)) return false;
  if (!fs::exists(folder / "train.bin", code)) return true;
  return fs::file_size(folder / "train.bin", code) % kRecordBytes == 0 &&
         (fs::exists(folder / "test.bin", code) ||
          fs::exists(folder / "fine_label_names.txt", code));
}

Result<std::string> kind_of_folder(const fs::path& folder) {
  if (holds_arrays(folder)) return std::string("arrays");
  if (holds_idx(folder) || holds_cifar_images(folder)) return std::string("images");
  if (holds_pictures(folder)) return std::string("images");
  if (find_token_files(folder).ok()) return std::string("tokens");
  DataConfig data;
  data.path = folder.string();
  const auto text = open_text_corpus(data);
  if (text.ok()) return std::string("text");
  return unrecognised(folder, text.error().what + ": " + text.error().cause,
                      "a folder has inputs.npy and targets.npy (arrays), sub-folders of pictures, "
                      "MNIST's or CIFAR's files (images), .bin or .npy files (tokens), or text");
}

Result<std::string> kind_of_array(std::span<const std::byte> bytes, const fs::path& path) {
  MOTLEY_ASSIGN(const NpyOutline outline, outline_npy(bytes, path.string()));
  const bool is_row =
      std::ranges::count_if(outline.shape, [](std::int64_t size) { return size != 1; }) <= 1;
  const bool are_integers = outline.type.find_first_of("iu") == 1;
  if (is_row && are_integers) return std::string("tokens");
  return unrecognised(path,
                      fmt::format("an array of shape {} and dtype '{}' alone",
                                  shape_text(outline.shape), excerpt(outline.type)),
                      "save inputs.npy and targets.npy in one folder, and name the folder");
}

Result<std::string> kind_of_file(const fs::path& path) {
  MOTLEY_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  if (bytes.empty()) return unrecognised(path, "the file is empty", "name a file with data");
  if (is_npy(file.bytes())) return kind_of_array(file.bytes(), path);
  if (auto packed = packed_tokens(bytes, path)) {
    packed->what = fmt::format("unrecognised data, {}", path.string());
    return *std::move(packed);
  }
  if (path.extension() == ".bin") return std::string("tokens");
  if (text_encoding(bytes)) return std::string("text");
  return unrecognised(path, "it is neither text nor a .bin or .npy file",
                      "for a file of tokens with another name, set data.kind = \"tokens\" in a "
                      "configuration, and check that");
}

}  // namespace

Result<std::string> recognise_data(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return kind_of_folder(path);
  if (fs::exists(path, code)) return kind_of_file(path);
  MOTLEY_ASSIGN(const TokenFiles found, find_token_files(path));
  if (fs::exists(found.files.front(), code)) return std::string("tokens");
  return Error{ErrorCode::kConfig, fmt::format("{} does not exist", path.string()), "",
               "check the path"};
}

}  // namespace motley
