#include "data/files/cifar_files.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCifarPixelBytes = std::size_t{3} * 32 * 32;

bool exists_in(const fs::path& folder, const std::string& name) {
  std::error_code code;
  return fs::exists(folder / name, code);
}

// The files and record layout of a version.
struct CifarKind {
  std::vector<std::string> train;  // file names
  std::string test;
  std::size_t label_bytes = 1;  // the last byte is the label
};

CifarKind cifar_kind(const fs::path& folder) {
  if (exists_in(folder, "train.bin")) return {{"train.bin"}, "test.bin", 2};
  CifarKind kind{{}, "test_batch.bin", 1};
  // All up to the last existing one, so that a missing one before it is detected.
  constexpr int kCifarBatches = 5;
  int last = 1;
  for (int batch = 1; batch <= kCifarBatches; ++batch) {
    if (exists_in(folder, fmt::format("data_batch_{}.bin", batch))) last = batch;
  }
  for (int batch = 1; batch <= last; ++batch) {
    kind.train.push_back(fmt::format("data_batch_{}.bin", batch));
  }
  return kind;
}

Result<Examples> open_cifar(const fs::path& folder,
                            const std::vector<std::string>& names,
                            std::size_t label_bytes,
                            ExampleStorage& storage) {
  const std::size_t image_bytes = label_bytes + kCifarPixelBytes;
  std::vector<Column::Run> pixels;
  std::vector<Column::Run> labels;
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    MOTLEY_ASSIGN(const auto file, storage.map(path));
    if (file.empty() || file.size() % image_bytes != 0) {
      return Error{
          ErrorCode::kData, fmt::format("unusable CIFAR file {}", path.string()),
          fmt::format("{} bytes are not a multiple of the {} bytes of an image", file.size(),
                      image_bytes),
          "use the binary version of the data set, and check that it was copied completely"};
    }
    storage.add_content(file);
    const std::uint64_t images = file.size() / image_bytes;
    pixels.push_back({path.string(), file.subspan(label_bytes), images, image_bytes});
    labels.push_back({path.string(), file.subspan(label_bytes - 1), images, image_bytes});
  }
  return Examples{{Column(ElementType::kUint8, {3, 32, 32}, std::move(pixels))},
                  Column(ElementType::kUint8, {}, std::move(labels))};
}

}  // namespace

bool holds_cifar(const fs::path& folder) {
  return exists_in(folder, "train.bin") || exists_in(folder, "data_batch_1.bin");
}

Result<ExampleFiles> open_cifar_folder(const fs::path& folder) {
  const CifarKind kind = cifar_kind(folder);
  ExampleStorage storage;
  MOTLEY_ASSIGN(Examples train, open_cifar(folder, kind.train, kind.label_bytes, storage));
  std::optional<Examples> held_out;
  if (exists_in(folder, kind.test)) {
    MOTLEY_ASSIGN(held_out, open_cifar(folder, {kind.test}, kind.label_bytes, storage));
  }
  return ExampleFiles{std::move(storage), std::move(train), std::move(held_out)};
}

bool holds_cifar_held_out(const fs::path& folder) {
  return holds_cifar(folder) || exists_in(folder, "test.bin") ||
         exists_in(folder, "test_batch.bin");
}

Result<ExampleFiles> open_cifar_held_out(const fs::path& folder) {
  const bool is_test_of_100 = !holds_cifar(folder) && exists_in(folder, "test.bin");
  const CifarKind kind = is_test_of_100 ? CifarKind{{}, "test.bin", 2} : cifar_kind(folder);
  const bool has_own = exists_in(folder, kind.test);
  const std::vector<std::string> names = has_own ? std::vector<std::string>{kind.test} : kind.train;
  ExampleStorage storage;
  MOTLEY_ASSIGN(Examples examples, open_cifar(folder, names, kind.label_bytes, storage));
  return ExampleFiles{std::move(storage), std::move(examples), std::nullopt};
}

}  // namespace motley
