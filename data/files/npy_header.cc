#include "data/files/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace motley {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kHeaderBytesMax = 64 << 10;
constexpr std::size_t kDimensionsMax = 9;  // eight of a sample, and the number of samples
constexpr std::int64_t kDimensionMax = std::int64_t{1} << 40;

Error damaged_npy(const std::string& path, const std::string& cause) {
  return {ErrorCode::kData, fmt::format("unusable array {}", path), cause,
          "write it again with numpy.save, or check that it was copied completely"};
}

Error other_npy(const std::string& path, const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kData, fmt::format("cannot use array {}", path), cause, remedy};
}

// The three entries of the header, as text.
struct NpyWords {
  std::optional<std::string_view> type;
  std::optional<bool> columns_first;
  std::optional<std::vector<std::int64_t>> shape;

  [[nodiscard]] bool complete() const { return type && columns_first && shape; }
};

// Parses the literal of a Python dictionary that NumPy writes. Each step either consumes the
// expected text or fails; nothing nests, so there is no recursion.
class NpyDictionary {
 public:
  explicit NpyDictionary(std::string_view text) : rest_(text) {}

  // nullopt if it is anything else.
  std::optional<NpyWords> read() {
    NpyWords words;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      if (!read_entry(words)) return std::nullopt;
      if (!take(',') && !next_is('}')) return std::nullopt;
    }
    skip_spaces();
    if (!rest_.empty() || !words.complete()) return std::nullopt;
    return words;
  }

 private:
  bool read_entry(NpyWords& words) {
    const auto name = text();
    if (!name || !take(':')) return false;
    if (*name == "descr" && !words.type) return (words.type = text()).has_value();
    if (*name == "fortran_order" && !words.columns_first) {
      return (words.columns_first = truth()).has_value();
    }
    if (*name == "shape" && !words.shape) return (words.shape = numbers()).has_value();
    return false;
  }

  std::optional<std::string_view> text() {
    skip_spaces();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return found;
  }

  std::optional<bool> truth() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(std::string_view(word).size());
      return value;
    }
    return std::nullopt;
  }

  std::optional<std::vector<std::int64_t>> numbers() {
    std::vector<std::int64_t> found;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc() || number < 0 || number > kDimensionMax) return std::nullopt;
      if (found.size() == kDimensionsMax) return std::nullopt;
      found.push_back(number);
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (!take(',') && !next_is(')')) return std::nullopt;
      skip_spaces();
    }
    return found;
  }

  bool next_is(char expected) {
    skip_spaces();
    return rest_.starts_with(expected);
  }

  bool take(char expected) {
    if (!next_is(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
  }

  std::string_view rest_;
};

std::optional<ElementType> element_of(std::string_view numpy_type) {
  if (numpy_type == "|b1") return ElementType::kBool;
  if (numpy_type == "|u1") return ElementType::kUint8;
  if (numpy_type == "|i1") return ElementType::kInt8;
  if (numpy_type == "<i2") return ElementType::kInt16;
  if (numpy_type == "<i4") return ElementType::kInt32;
  if (numpy_type == "<i8") return ElementType::kInt64;
  if (numpy_type == "<f4") return ElementType::kFloat32;
  return std::nullopt;
}

// The expression that converts an array `a` of that type into a usable one.
std::string conversion(std::string_view numpy_type) {
  const std::string_view kind = numpy_type.substr(std::min<std::size_t>(1, numpy_type.size()));
  const char* wanted = "bool, uint8, int8, int16, int32, int64 or float32";
  if (kind == "i2" || kind == "u2" || kind == "i4") wanted = "int32";
  if (kind == "u4" || kind == "u8" || kind == "i8") wanted = "int64";
  if (kind == "f2" || kind == "f4" || kind == "f8") wanted = "float32";
  const std::string_view word = wanted;
  if (word.find(' ') != std::string_view::npos) return fmt::format("save it as {}", word);
  return fmt::format("save it as {}: numpy.save(name, a.astype('{}'))", word, word);
}

struct TextPlace {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

// The position of the dictionary, checked to be within the file and not too long.
Result<TextPlace> find_dictionary(std::span<const std::byte> file, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) return damaged_npy(path, "it does not start like a .npy file");
  constexpr std::size_t kVersionBytes = 2;
  if (file.size() < kMagic.size() + kVersionBytes)
    return damaged_npy(path, "it ends in its header");
  const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(file[at]); };
  const std::size_t version = byte(kMagic.size());
  if (version < 1 || version > 3 || byte(kMagic.size() + 1) != 0) {
    return damaged_npy(path, fmt::format("its version is {}.{}; supported are 1.0, 2.0 and 3.0",
                                         version, byte(kMagic.size() + 1)));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  TextPlace place{kMagic.size() + kVersionBytes + length_bytes, 0};
  if (file.size() < place.begin) return damaged_npy(path, "it ends in its header");
  for (std::size_t i = 1; i <= length_bytes; ++i) {
    place.bytes = (place.bytes << 8) | byte(place.begin - i);
  }
  if (place.bytes > kHeaderBytesMax || place.bytes > file.size() - place.begin) {
    return damaged_npy(path, fmt::format("its header has {} bytes; at most {} are allowed, and {} "
                                         "follow",
                                         place.bytes, kHeaderBytesMax, file.size() - place.begin));
  }
  return place;
}

}  // namespace

bool is_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  return text.starts_with(kMagic);
}

Result<NpyOutline> outline_npy(std::span<const std::byte> file, const std::string& path) {
  MOTLEY_ASSIGN(const TextPlace place, find_dictionary(file, path));
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + place.begin,
                              place.bytes);
  const auto words = NpyDictionary(text).read();
  if (!words) {
    return damaged_npy(path, fmt::format("its header is not that of an array of plain numbers: {}",
                                         excerpt(text)));
  }
  return NpyOutline{std::string(*words->type), *words->columns_first, *words->shape,
                    place.begin + place.bytes};
}

Result<void> check_npy_length(const NpyOutline& outline,
                              std::string_view element,
                              std::size_t element_bytes,
                              std::size_t file_bytes,
                              const std::string& path) {
  std::uint64_t bytes = element_bytes;
  bool fits = true;
  for (const std::int64_t dimension : outline.shape) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dimension), &bytes);
  }
  const std::uint64_t held = file_bytes - outline.data_begin;
  if (fits && bytes == held) return {};
  return damaged_npy(path, fmt::format("its header declares {} of {}, but {} bytes follow",
                                       shape_text(outline.shape), element, held));
}

Result<NpyHeader> parse_npy(std::span<const std::byte> file, const std::string& path) {
  MOTLEY_ASSIGN(NpyOutline outline, outline_npy(file, path));
  const auto type = element_of(outline.type);
  if (!type) {
    return other_npy(path, fmt::format("its NumPy dtype is '{}'", excerpt(outline.type)),
                     conversion(outline.type));
  }
  if (outline.columns_first) {
    return other_npy(path, "it is in column-major (Fortran) order",
                     "save it in row-major order: numpy.save(name, numpy.ascontiguousarray(a))");
  }
  MOTLEY_TRY(
      check_npy_length(outline, element_name(*type), element_bytes(*type), file.size(), path));
  return NpyHeader{*type, std::move(outline.shape), outline.data_begin};
}

}  // namespace motley
