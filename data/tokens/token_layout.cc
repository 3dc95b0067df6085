#include "data/tokens/token_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

#include "data/files/mapped_file.h"
#include "data/files/npy_header.h"
#include "data/files/packed_file.h"
#include "data/tokens/megatron_index.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderWords = 256;  // of int32
constexpr std::size_t kHeaderBytes = kHeaderWords * sizeof(std::int32_t);
constexpr const char* kSetDtype =
    "set data.dtype to the dtype of its tokens: uint8, uint16, uint32, int8, int16, int32 or int64";

// llm.c's two file formats.
struct HeaderKind {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};

constexpr std::array kHeaderKinds = {HeaderKind{20240520, 1, TokenType::kUint16},
                                     HeaderKind{20240801, 7, TokenType::kUint32}};

Error damaged(const std::string& path, const std::string& cause) {
  return {ErrorCode::kData, fmt::format("unusable token file {}", path), cause,
          "create the file again, or check that it was copied completely"};
}

Error unusable(const std::string& path, const std::string& cause, const std::string& remedy) {
  return {ErrorCode::kData, fmt::format("unusable token file {}", path), cause, remedy};
}

std::int32_t word(std::span<const std::byte> bytes, std::size_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// nanoGPT's files have no header, so only the magic number distinguishes the formats.
std::optional<HeaderKind> find_header(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(std::int32_t)) return std::nullopt;
  for (const HeaderKind& kind : kHeaderKinds) {
    if (word(bytes, 0) == kind.magic) return kind;
  }
  return std::nullopt;
}

// llm.c's other files begin with magic numbers of their own, too.
Result<void> check_is_no_other_file(std::span<const std::byte> bytes, const std::string& path) {
  constexpr std::array kOthers = {std::pair{20240326, "a model"},
                                  std::pair{20240327, "a state for debugging"},
                                  std::pair{20240328, "a tokenizer"},
                                  std::pair{20240522, "an evaluation of choices"},
                                  std::pair{20240527, "an optimizer's state"},
                                  std::pair{20240803, "a Llama model or state"}};
  if (bytes.size() < kHeaderBytes) return {};
  for (const auto& [magic, is] : kOthers) {
    if (word(bytes, 0) != magic) continue;
    return unusable(path, fmt::format("it is {} of llm.c, by its magic number {}", is, magic),
                    "set data.path to a file of tokens");
  }
  return {};
}

Result<void> check_header(std::span<const std::byte> bytes,
                          const HeaderKind& kind,
                          const std::string& path) {
  if (bytes.size() < kHeaderBytes) {
    return damaged(
        path, fmt::format("{} bytes are less than the header's {}", bytes.size(), kHeaderBytes));
  }
  if (word(bytes, 1) != kind.version) {
    return damaged(path, fmt::format("its version is {}; magic number {} requires version {}",
                                     word(bytes, 1), kind.magic, kind.version));
  }
  const std::int64_t count = word(bytes, 2);
  const std::uint64_t held = (bytes.size() - kHeaderBytes);
  if (count < 0 || static_cast<std::uint64_t>(count) * token_bytes(kind.type) != held) {
    return damaged(
        path, fmt::format("the header declares {} tokens of {} bytes, but {} bytes follow", count,
                          token_bytes(kind.type), held));
  }
  return {};
}

// Rejects a data.dtype that contradicts the header or the index, `where` the type is declared.
Result<void> check_dtype(const std::string& dtype,
                         TokenType type,
                         const std::string& path,
                         const char* where) {
  const auto said = token_type_of(dtype);
  if (!said || *said == type) return {};
  return unusable(
      path,
      fmt::format("its {} declares {}, data.dtype is {}", where, token_type_name(type), dtype),
      "leave out data.dtype");
}

std::optional<TokenType> type_of_npy(const std::string& numpy_type) {
  if (numpy_type == "|u1") return TokenType::kUint8;
  if (numpy_type == "<u2") return TokenType::kUint16;
  if (numpy_type == "<u4") return TokenType::kUint32;
  if (numpy_type == "|i1") return TokenType::kInt8;
  if (numpy_type == "<i2") return TokenType::kInt16;
  if (numpy_type == "<i4") return TokenType::kInt32;
  if (numpy_type == "<i8" || numpy_type == "<u8") return TokenType::kInt64;
  return std::nullopt;
}

Result<TokenLayout> layout_of_npy(std::span<const std::byte> bytes,
                                  const std::string& path,
                                  const std::string& dtype) {
  MOTLEY_ASSIGN(const NpyOutline outline, outline_npy(bytes, path));
  const auto type = type_of_npy(outline.type);
  if (!type) {
    return unusable(path, fmt::format("its NumPy dtype is '{}'", excerpt(outline.type)),
                    "save integers of this machine's byte order: numpy.save(name, "
                    "a.astype('uint32'))");
  }
  const auto rows =
      std::ranges::count_if(outline.shape, [](std::int64_t size) { return size != 1; });
  if (rows > 1) {
    return unusable(
        path, fmt::format("its shape is {}; tokens must be one row", shape_text(outline.shape)),
        "save one row, numpy.save(name, a.reshape(-1)), or use data.kind = \"arrays\"");
  }
  MOTLEY_TRY(
      check_npy_length(outline, token_type_name(*type), token_bytes(*type), bytes.size(), path));
  MOTLEY_TRY(check_dtype(dtype, *type, path, "header"));
  return TokenLayout{*type, outline.data_begin, true};
}

// The index beside NAME.bin, if there is one.
std::optional<fs::path> index_of(const fs::path& path) {
  fs::path index = path;
  index.replace_extension(".idx");
  std::error_code code;
  const bool has_index = path.extension() == ".bin" && fs::exists(index, code);
  return has_index ? std::optional(index) : std::nullopt;
}

Result<TokenLayout> layout_of_megatron(std::span<const std::byte> bytes,
                                       const fs::path& path,
                                       const fs::path& index_path,
                                       const std::string& dtype) {
  MOTLEY_ASSIGN(const MappedFile file, MappedFile::open(index_path));
  MOTLEY_ASSIGN(const MegatronIndex index,
                parse_megatron_index(file.bytes(), bytes.size(), index_path.string()));
  MOTLEY_TRY(check_dtype(dtype, index.type, path.string(), "index"));
  return TokenLayout{index.type, 0, true};
}

// For a file of tokens without a header and without a given type.
Result<TokenType> found_type(std::span<const std::byte> bytes,
                             const std::string& path,
                             std::uint32_t vocab) {
  constexpr std::uint32_t kShortVocab = 1U << 16;
  if (bytes.empty()) return TokenType::kUint16;
  switch (token_evidence(bytes, vocab)) {
    case TokenEvidence::kText:
      return unusable(path, "it is text", "set data.kind = \"text\", or tokenize it first");
    case TokenEvidence::kBigEndian:
      return unusable(path, "its tokens are big-endian, of 32 or 64 bits",
                      "write it again as little-endian: a.astype('<u4').tofile(name)");
    case TokenEvidence::kFloat32:
    case TokenEvidence::kFloat64:
      return unusable(path, "its tokens are floating-point numbers",
                      "write it again as integers: a.astype('<u4').tofile(name)");
    case TokenEvidence::kUint8OrUint16:
      return unusable(
          path,
          "the dtype of its tokens is ambiguous, uint8 or uint16: bytes at even and odd places "
          "have the same distribution, as for uint8 tokens and rarely for uint16 tokens",
          "set data.dtype = \"uint8\" if each byte is a token, or data.dtype = \"uint16\" if two "
          "bytes are");
    case TokenEvidence::kSwapped:
      return unusable(
          path,
          "the bytes of its tokens seem to be swapped: as uint16 they vary more in the upper byte "
          "than in the lower one, like big-endian numbers read as little-endian",
          "write it again as little-endian: numpy.asarray(x, \"<u2\").tofile(name); or set "
          "data.dtype = \"uint16\" to use it unchanged");
    case TokenEvidence::kUint8:
      return TokenType::kUint8;
    case TokenEvidence::kUint32:
      return TokenType::kUint32;
    case TokenEvidence::kInt64:
      return TokenType::kInt64;
    case TokenEvidence::kUint16:
      return TokenType::kUint16;
    case TokenEvidence::kNone:
      break;
  }
  if (vocab <= kShortVocab) return TokenType::kUint16;
  return unusable(
      path,
      fmt::format("the dtype of its tokens cannot be detected: it has no header, a vocabulary of "
                  "{} needs more than 16 bits, and its {} bytes show no width",
                  vocab, bytes.size()),
      kSetDtype);
}

}  // namespace

Result<TokenLayout> layout_of_tokens(std::span<const std::byte> bytes,
                                     const fs::path& path,
                                     const std::string& dtype,
                                     std::uint32_t vocab) {
  const std::string name = path.string();
  if (is_npy(bytes)) return layout_of_npy(bytes, name, dtype);
  if (const auto index = index_of(path)) return layout_of_megatron(bytes, path, *index, dtype);
  if (const auto kind = find_header(bytes)) {
    MOTLEY_TRY(check_header(bytes, *kind, name));
    MOTLEY_TRY(check_dtype(dtype, kind->type, name, "header"));
    return TokenLayout{kind->type, kHeaderBytes, true};
  }
  auto type = token_type_of(dtype);
  if (!type) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (auto packed = packed_tokens(text, path)) return *std::move(packed);
    MOTLEY_TRY(check_is_no_other_file(bytes, name));
    if (path.extension() == ".npy") {
      return damaged(name, "it does not begin like the .npy file that its name says");
    }
    MOTLEY_ASSIGN(type, found_type(bytes, name, vocab));
  }
  if (bytes.size() % token_bytes(*type) != 0) {
    return damaged(name, fmt::format("{} bytes are not a multiple of {}-bit tokens", bytes.size(),
                                     8 * token_bytes(*type)));
  }
  // Of the types that are detected or configured, 16 bits are the usual ones, in nanoGPT's files.
  return TokenLayout{*type, 0, *type == TokenType::kUint16};
}

}  // namespace motley
