#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "data/identity.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

// The mapped bytes are not an array of T, so a token is copied; compilers make this a plain load.
template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t position) {
  T token;
  std::memcpy(&token, bytes.data() + position * sizeof(T), sizeof(T));
  return token;
}

template <class T>
void copy_tokens(std::span<const std::byte> bytes,
                 std::uint64_t first,
                 std::span<std::int32_t> tokens_T) {
  for (std::size_t i = 0; i < tokens_T.size(); ++i) {
    tokens_T[i] = static_cast<std::int32_t>(load<T>(bytes, first + i));
  }
}

// T is unsigned, so that a negative token is above every vocabulary.
template <class T>
std::optional<std::uint64_t> find_outside(std::span<const std::byte> bytes,
                                          std::uint32_t vocab,
                                          ProgressCounter* work) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 22;  // between two progress reports
  const std::uint64_t count = bytes.size() / sizeof(T);
  for (std::uint64_t first = 0; first < count; first += kPiece) {
    const std::uint64_t end = std::min(count, first + kPiece);
    for (std::uint64_t position = first; position < end; ++position) {
      if (load<T>(bytes, position) >= vocab) return position;
    }
    if (work != nullptr) work->add_bytes((end - first) * sizeof(T));
  }
  return std::nullopt;
}

// Calls use(T{}) with the unsigned type of the token's width.
template <class Use>
auto with_width(TokenType type, const Use& use) {
  switch (type) {
    case TokenType::kUint8:
      return use(std::uint8_t{});
    case TokenType::kUint16:
      return use(std::uint16_t{});
    case TokenType::kUint32:
    case TokenType::kInt32:
      break;
    case TokenType::kInt64:
      return use(std::uint64_t{});
  }
  return use(std::uint32_t{});
}

}  // namespace

Corpus::Corpus(std::variant<MappedFile, std::string> storage,
               std::size_t begin,
               TokenType type,
               bool has_usual_type)
    : storage_(std::move(storage)), begin_(begin), type_(type), has_usual_type_(has_usual_type) {
  MOTLEY_CHECK(bytes().size() % token_bytes(type) == 0, "{} bytes of {} a token", bytes().size(),
               token_bytes(type));
}

std::span<const std::byte> Corpus::bytes() const {
  const auto* file = std::get_if<MappedFile>(&storage_);
  const auto all =
      file != nullptr ? file->bytes() : std::as_bytes(std::span(std::get<std::string>(storage_)));
  return all.subspan(begin_);
}

void Corpus::release_pages() const {
  if (const auto* file = std::get_if<MappedFile>(&storage_)) file->release_pages();
}

std::uint64_t Corpus::size() const {
  return bytes().size() / token_bytes(type_);
}

void Corpus::copy(std::uint64_t first, std::span<std::int32_t> tokens_T) const {
  MOTLEY_CHECK(first <= size() && tokens_T.size() <= size() - first, "{} tokens from {} of {}",
               tokens_T.size(), first, size());
  with_width(type_, [&]<class T>(T) { copy_tokens<T>(bytes(), first, tokens_T); });
}

std::optional<Corpus::Token> Corpus::first_outside(std::uint32_t vocab,
                                                   ProgressCounter* work) const {
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) reading.emplace(*work, "reading the data", bytes().size());
  const auto position =
      with_width(type_, [&]<class T>(T) { return find_outside<T>(bytes(), vocab, work); });
  if (!position) return std::nullopt;
  const auto value = with_width(
      type_, [&]<class T>(T) { return static_cast<std::int64_t>(load<T>(bytes(), *position)); });
  const bool is_signed = type_ == TokenType::kInt32;
  return Token{*position, is_signed ? static_cast<std::int32_t>(value) : value};
}

bool Corpus::are_within_swapped(std::uint32_t vocab) const {
  MOTLEY_CHECK(type_ == TokenType::kUint16, "tokens of {}", token_type_name(type_));
  for (std::uint64_t position = 0; position < size(); ++position) {
    if (__builtin_bswap16(load<std::uint16_t>(bytes(), position)) >= vocab) return false;
  }
  return true;
}

DataIdentity Corpus::identity() const {
  DataIdentity identity = identify(bytes());
  if (has_usual_type_) return identity;
  Hasher128 hasher;
  hasher.add(fmt::format("{}\n{} bytes a token\n", identity.hash, token_bytes(type_)));
  identity.hash = hasher.hex();
  return identity;
}

}  // namespace motley
