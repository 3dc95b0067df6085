#include "data/files/idx_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdxMagicBytes = 4;
constexpr std::size_t kIdxSizeBytes = 4;
constexpr unsigned kIdxOfBytes = 8;

Error damaged_idx(const std::string& path, const std::string& cause) {
  return {ErrorCode::kData, fmt::format("unusable IDX file {}", path), cause,
          "check that it was copied completely, and is not compressed (gunzip it)"};
}

// The names in use: as on MNIST's page, as some programs unpack them, and without the suffix.
std::optional<fs::path> find_idx(const fs::path& folder,
                                 const std::string& part,
                                 const std::string& what,
                                 int dimensions) {
  for (const char* before : {"-", "."}) {
    for (const char* after : {"-ubyte", ""}) {
      const fs::path path =
          folder / fmt::format("{}-{}{}idx{}{}", part, what, before, dimensions, after);
      std::error_code code;
      if (fs::exists(path, code)) return path;
    }
  }
  return std::nullopt;
}

Result<Column> open_idx(const fs::path& folder,
                        const std::string& part,
                        const std::string& what,
                        int dimensions,
                        ExampleStorage& storage) {
  const std::string usual = fmt::format("{}-{}-idx{}-ubyte", part, what, dimensions);
  const fs::path path = find_idx(folder, part, what, dimensions).value_or(folder / usual);
  MOTLEY_ASSIGN(const auto file, storage.map(path));
  MOTLEY_ASSIGN(IdxHeader header,
                parse_idx(file, static_cast<std::size_t>(dimensions), path.string()));
  const auto bytes = file.subspan(header.data_begin);
  storage.add_content(bytes);
  const auto samples = static_cast<std::uint64_t>(header.shape.front());
  header.shape.erase(header.shape.begin());
  return Column(ElementType::kUint8, std::move(header.shape),
                {{path.string(), bytes, samples, bytes.size() / samples}});
}

Result<Examples> open_idx_part(const fs::path& folder,
                               const std::string& part,
                               ExampleStorage& storage) {
  MOTLEY_ASSIGN(Column images, open_idx(folder, part, "images", 3, storage));
  MOTLEY_ASSIGN(Column labels, open_idx(folder, part, "labels", 1, storage));
  if (images.size() != labels.size()) {
    return Error{ErrorCode::kData,
                 fmt::format("images and labels of {} do not match, {}", part, folder.string()),
                 fmt::format("{} images and {} labels", images.size(), labels.size()),
                 "use both files of the same data set"};
  }
  return Examples{{std::move(images)}, std::move(labels)};
}

}  // namespace

Result<IdxHeader> parse_idx(std::span<const std::byte> file,
                            std::size_t dimensions,
                            const std::string& path) {
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(file[at]); };
  IdxHeader header{{}, kIdxMagicBytes + dimensions * kIdxSizeBytes};
  if (file.size() < header.data_begin) {
    return damaged_idx(
        path, fmt::format("{} bytes are less than a header's {}", file.size(), header.data_begin));
  }
  if (byte(0) != 0 || byte(1) != 0 || byte(2) != kIdxOfBytes || byte(3) != dimensions) {
    return damaged_idx(path,
                       fmt::format("it starts with the bytes {} {} {} {}; an array of bytes in {} "
                                   "dimensions starts with 0 0 8 {}",
                                   byte(0), byte(1), byte(2), byte(3), dimensions, dimensions));
  }
  std::uint64_t bytes = 1;
  bool fits = true;
  for (std::size_t at = kIdxMagicBytes; at < header.data_begin; at += kIdxSizeBytes) {
    const std::uint32_t size =
        byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    fits = fits && size > 0 && !__builtin_mul_overflow(bytes, std::uint64_t{size}, &bytes);
    header.shape.push_back(size);
  }
  const std::uint64_t held = file.size() - header.data_begin;
  if (!fits || bytes != held) {
    return damaged_idx(path, fmt::format("its header declares {}, but {} bytes follow",
                                         shape_text(header.shape), held));
  }
  return header;
}

bool holds_idx(const fs::path& folder) {
  return find_idx(folder, "train", "images", 3).has_value();
}

Result<ExampleFiles> open_idx_folder(const fs::path& folder) {
  ExampleStorage storage;
  MOTLEY_ASSIGN(Examples train, open_idx_part(folder, "train", storage));
  std::optional<Examples> held_out;
  if (find_idx(folder, "t10k", "images", 3)) {
    MOTLEY_ASSIGN(held_out, open_idx_part(folder, "t10k", storage));
    const auto shape = train.inputs.front().shape();
    const auto other = held_out->inputs.front().shape();
    if (!std::ranges::equal(shape, other)) {
      return Error{ErrorCode::kData,
                   fmt::format("train and t10k do not match, {}", folder.string()),
                   fmt::format("their images are {} and {}", shape_text(shape), shape_text(other)),
                   "use both of the same data set"};
    }
  }
  return ExampleFiles{std::move(storage), std::move(train), std::move(held_out)};
}

bool holds_idx_held_out(const fs::path& folder) {
  return holds_idx(folder) || find_idx(folder, "t10k", "images", 3).has_value();
}

Result<ExampleFiles> open_idx_held_out(const fs::path& folder) {
  const bool has_own = find_idx(folder, "t10k", "images", 3).has_value();
  ExampleStorage storage;
  MOTLEY_ASSIGN(Examples examples, open_idx_part(folder, has_own ? "t10k" : "train", storage));
  return ExampleFiles{std::move(storage), std::move(examples), std::nullopt};
}

}  // namespace motley
