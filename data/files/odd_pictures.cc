#include "data/files/odd_pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace motley {
namespace {

constexpr std::size_t kNamedMax = 10;
constexpr std::size_t kPathBytesMax = 120;

}  // namespace

void OddPictures::List::add(std::string text) {
  ++count;
  if (first.size() < kNamedMax) first.push_back(std::move(text));
}

std::string OddPictures::List::text() const {
  const std::string named = fmt::format("{}", fmt::join(first, "; "));
  return count > first.size() ? fmt::format("{}; and {} more", named, count - first.size()) : named;
}

void OddPictures::add_damaged(const std::filesystem::path& picture, const std::string& cause) {
  damaged_.add(fmt::format("{}: {}", excerpt(picture.string(), kPathBytesMax), excerpt(cause)));
}

void OddPictures::add_with_stray_bytes(const std::filesystem::path& picture) {
  with_stray_bytes_.add(excerpt(picture.string(), kPathBytesMax));
}

Error OddPictures::refusal(std::uint64_t pictures, const std::filesystem::path& folder) const {
  return {ErrorCode::kData,
          fmt::format("{} of {} pictures cannot be used, {}", damaged_.count, pictures,
                      folder.string()),
          damaged_.text(),
          "convert them again or remove them, or set data.skip_damaged = true to leave them out"};
}

std::vector<std::string> OddPictures::notes(std::uint64_t pictures,
                                            const std::filesystem::path& folder) const {
  std::vector<std::string> notes;
  if (damaged_.count > 0) {
    notes.push_back(fmt::format("{} of {} pictures were left out as damaged, {}: {}",
                                damaged_.count, pictures, folder.string(), damaged_.text()));
  }
  if (with_stray_bytes_.count > 0) {
    notes.push_back(
        fmt::format("{} JPEG files have bytes that belong to no picture, {}: they were read as "
                    "other programs do, and may be damaged: {}",
                    with_stray_bytes_.count, folder.string(), with_stray_bytes_.text()));
  }
  return notes;
}

}  // namespace motley
