#include "data/corpus.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

// The mapped bytes are no array of T, so a token is copied out; compilers make this a plain load.
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

template <class T>
std::optional<Corpus::Token> find_outside(std::span<const std::byte> bytes,
                                          std::uint32_t vocab,
                                          WorkCounter* work) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 22;  // between two signs of getting on
  const std::uint64_t count = bytes.size() / sizeof(T);
  for (std::uint64_t first = 0; first < count; first += kPiece) {
    const std::uint64_t end = std::min(count, first + kPiece);
    for (std::uint64_t position = first; position < end; ++position) {
      const std::uint32_t value = load<T>(bytes, position);
      if (value >= vocab) return Corpus::Token{position, value};
    }
    if (work != nullptr) work->add_bytes((end - first) * sizeof(T));
  }
  return std::nullopt;
}

}  // namespace

Corpus::Corpus(std::variant<MappedFile, std::string> storage, std::size_t begin, Width width)
    : storage_(std::move(storage)), begin_(begin), width_(width) {
  MOTLEY_CHECK(bytes().size() % static_cast<std::size_t>(width) == 0, "{} bytes of {} a token",
               bytes().size(), static_cast<std::size_t>(width));
}

std::span<const std::byte> Corpus::bytes() const {
  const auto* file = std::get_if<MappedFile>(&storage_);
  const auto all =
      file != nullptr ? file->bytes() : std::as_bytes(std::span(std::get<std::string>(storage_)));
  return all.subspan(begin_);
}

std::uint64_t Corpus::size() const {
  return bytes().size() / static_cast<std::size_t>(width_);
}

void Corpus::copy(std::uint64_t first, std::span<std::int32_t> tokens_T) const {
  MOTLEY_CHECK(first <= size() && tokens_T.size() <= size() - first, "{} tokens from {} of {}",
               tokens_T.size(), first, size());
  switch (width_) {
    case Width::kByte:
      return copy_tokens<std::uint8_t>(bytes(), first, tokens_T);
    case Width::kUint16:
      return copy_tokens<std::uint16_t>(bytes(), first, tokens_T);
    case Width::kUint32:
      return copy_tokens<std::uint32_t>(bytes(), first, tokens_T);
  }
}

std::optional<Corpus::Token> Corpus::first_outside(std::uint32_t vocab, WorkCounter* work) const {
  std::optional<WorkCounter::Task> reading;
  if (work != nullptr) reading.emplace(*work, "reading the data", bytes().size());
  switch (width_) {
    case Width::kByte:
      return find_outside<std::uint8_t>(bytes(), vocab, work);
    case Width::kUint16:
      return find_outside<std::uint16_t>(bytes(), vocab, work);
    case Width::kUint32:
      return find_outside<std::uint32_t>(bytes(), vocab, work);
  }
  return std::nullopt;
}

}  // namespace motley
