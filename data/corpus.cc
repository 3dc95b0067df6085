#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
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
    case TokenType::kInt8:
      return use(std::uint8_t{});
    case TokenType::kUint16:
    case TokenType::kInt16:
      return use(std::uint16_t{});
    case TokenType::kUint32:
    case TokenType::kInt32:
      break;
    case TokenType::kInt64:
      return use(std::uint64_t{});
  }
  return use(std::uint32_t{});
}

// Narrow signed types have this many values that are not negative.
std::uint32_t values_of(TokenType type) {
  if (type == TokenType::kInt8) return 1U << 7;
  if (type == TokenType::kInt16) return 1U << 15;
  return std::numeric_limits<std::uint32_t>::max();
}

std::int64_t value_at(std::span<const std::byte> bytes, TokenType type, std::uint64_t position) {
  switch (type) {
    case TokenType::kUint8:
      return load<std::uint8_t>(bytes, position);
    case TokenType::kInt8:
      return load<std::int8_t>(bytes, position);
    case TokenType::kUint16:
      return load<std::uint16_t>(bytes, position);
    case TokenType::kInt16:
      return load<std::int16_t>(bytes, position);
    case TokenType::kUint32:
      return load<std::uint32_t>(bytes, position);
    case TokenType::kInt32:
      return load<std::int32_t>(bytes, position);
    case TokenType::kInt64:
      break;
  }
  return load<std::int64_t>(bytes, position);
}

std::vector<Corpus::Part> one_part(std::variant<MappedFile, std::string> storage,
                                   std::size_t begin) {
  std::vector<Corpus::Part> parts;
  parts.push_back({std::move(storage), begin, ""});
  return parts;
}

}  // namespace

Corpus::Corpus(std::vector<Part> parts, TokenType type, bool has_usual_type)
    : parts_(std::move(parts)), type_(type), has_usual_type_(has_usual_type) {
  MOTLEY_CHECK(!parts_.empty(), "a corpus of no parts");
  std::uint64_t first = 0;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const std::size_t size = bytes(part).size();
    MOTLEY_CHECK(size % token_bytes(type) == 0, "{} bytes of {} a token", size, token_bytes(type));
    firsts_.push_back(first);
    first += size / token_bytes(type);
  }
  firsts_.push_back(first);
}

Corpus::Corpus(std::variant<MappedFile, std::string> storage, std::size_t begin, TokenType type)
    : Corpus(one_part(std::move(storage), begin), type) {}

std::span<const std::byte> Corpus::bytes(std::size_t part) const {
  const Part& of = parts_.at(part);
  const auto* file = std::get_if<MappedFile>(&of.storage);
  const auto all =
      file != nullptr ? file->bytes() : std::as_bytes(std::span(std::get<std::string>(of.storage)));
  return all.subspan(of.begin);
}

void Corpus::release_pages() const {
  for (const Part& part : parts_) {
    if (const auto* file = std::get_if<MappedFile>(&part.storage)) file->release_pages();
  }
}

std::uint64_t Corpus::size() const {
  return firsts_.back();
}

void Corpus::copy(std::uint64_t first, std::span<std::int32_t> tokens_T) const {
  MOTLEY_CHECK(first <= size() && tokens_T.size() <= size() - first, "{} tokens from {} of {}",
               tokens_T.size(), first, size());
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end() - 1, first);
  auto part = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  for (; !tokens_T.empty(); ++part) {
    const std::uint64_t left = firsts_[part + 1] - first;
    const auto now_T = tokens_T.first(std::min<std::uint64_t>(left, tokens_T.size()));
    with_width(type_,
               [&]<class T>(T) { copy_tokens<T>(bytes(part), first - firsts_[part], now_T); });
    tokens_T = tokens_T.subspan(now_T.size());
    first += now_T.size();
  }
}

std::optional<Corpus::Token> Corpus::first_outside(std::uint32_t vocab,
                                                   ProgressCounter* work) const {
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) reading.emplace(*work, "reading the data", size() * token_bytes(type_));
  const std::uint32_t limit = std::min(vocab, values_of(type_));
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto position =
        with_width(type_, [&]<class T>(T) { return find_outside<T>(bytes(part), limit, work); });
    if (!position) continue;
    return Token{*position, value_at(bytes(part), type_, *position), parts_[part].file};
  }
  return std::nullopt;
}

Corpus::Range Corpus::range() const {
  Range range{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
              0};
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const std::uint64_t count = firsts_[part + 1] - firsts_[part];
    for (std::uint64_t position = 0; position < count; ++position) {
      const std::int64_t value = value_at(bytes(part), type_, position);
      range.lowest = std::min(range.lowest, value);
      range.highest = std::max(range.highest, value);
      range.zeros += value == 0 ? 1 : 0;
    }
  }
  return range;
}

bool Corpus::are_within_swapped(std::uint32_t vocab) const {
  MOTLEY_CHECK(type_ == TokenType::kUint16, "tokens of {}", token_type_name(type_));
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto stored = bytes(part);
    for (std::uint64_t position = 0; position < stored.size() / sizeof(std::uint16_t); ++position) {
      if (__builtin_bswap16(load<std::uint16_t>(stored, position)) >= vocab) return false;
    }
  }
  return true;
}

DataIdentity Corpus::identity() const {
  std::vector<std::span<const std::byte>> stored;
  for (std::size_t part = 0; part < parts_.size(); ++part) stored.push_back(bytes(part));
  DataIdentity identity = identify(stored);
  if (has_usual_type_) return identity;
  Hasher128 hasher;
  hasher.add(fmt::format("{}\n{} bytes a token\n", identity.hash, token_bytes(type_)));
  identity.hash = hasher.hex();
  return identity;
}

}  // namespace motley
